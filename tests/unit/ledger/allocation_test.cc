#include <gtest/gtest.h>

#include "unit/ledger/counting_new.h"
#include "unit/ledger/reference.h"

namespace fcap::ledger {
namespace {

using testing::allocated_bytes;
using testing::allocations;

TEST(LedgerMemory, DecodingAgainDoesNotAllocate) {
  std::mt19937_64 random(test_seed());
  std::vector<std::string> records;
  for (int i = 0; i < 50; ++i) {
    auto shape = testing::random_shape(random);
    std::string record = testing::tail_of(random_history(random, shape));
    if (i % 2 == 0) record = compact(testing::decoded(record), {}, {}).record;
    shape.entries = 1 + random() % 30;
    record += testing::tail_of(random_history(random, shape));
    records.push_back(record);
  }
  Ledger ledger;
  for (const std::string& record : records) (void)ledger.decode(record);
  const std::size_t before = allocations();
  for (const std::string& record : records) (void)ledger.decode(record);
  EXPECT_EQ(allocations(), before);
}

TEST(LedgerMemory, ABadRecordAllocatesNoMoreThanAMultipleOfItself) {
  // What claims 2^32 runs, entries or creatives holds a few bytes.
  for (const char* hex : {"020b 00 00f15365 ffffffff0f 00",
                          "0219 00 00f15365 01 0f ffffffff0f eb1e45e6626c 7b0000 4c61213e",
                          "021a 08 00f15365 01 00 eb1e45e6626c 7b0000 4c61213e ffffffff0f 00"}) {
    const std::string record = testing::from_hex(hex);
    Ledger ledger;
    const std::size_t before = allocated_bytes();
    EXPECT_EQ(ledger.decode(record), DecodeCode::kMalformed);
    EXPECT_LE(allocated_bytes() - before, 16 * record.size());
  }
}

}  // namespace
}  // namespace fcap::ledger
