#include <new>

#include <gtest/gtest.h>

#include "unit/ledger/counting_new.h"
#include "unit/ledger/reference.h"

namespace fcap::ledger {
namespace allocation_test {

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

TEST(LedgerMemory, RunningOutOfItWhileDecodingLeavesAnEmptyLedgerThatCanBeUsedAgain) {
  std::mt19937_64 random(test_seed());
  auto shape = testing::random_shape(random);
  shape.entries = 200;
  std::string record =
      compact(testing::decoded(testing::tail_of(random_history(random, shape))), {}, {}).record;
  shape.entries = 40;
  record += testing::tail_of(random_history(random, shape));
  // Times that descend within a run make the columns be built again.
  const std::string unsorted = record + record;
  for (const std::string& bytes : {record, unsorted}) {
    const Ledger expected = testing::decoded(bytes);
    std::ptrdiff_t failed = 0;
    for (bool whole = false; !whole; ++failed) {
      Ledger ledger;
      DecodeCode code = DecodeCode::kMalformed;
      testing::fail_allocations_after(failed);
      try {
        code = ledger.decode(bytes);
        whole = true;
      } catch (const std::bad_alloc&) {
      }
      testing::fail_allocations_after(-1);
      if (whole) {
        EXPECT_EQ(code, DecodeCode::kOk);
      } else {
        EXPECT_TRUE(ledger.empty() && ledger.runs().empty()) << "allocation " << failed;
        EXPECT_EQ(ledger.decode(bytes), DecodeCode::kOk) << "allocation " << failed;
      }
      EXPECT_EQ(testing::entries_of(ledger), testing::entries_of(expected));
    }
    EXPECT_GT(failed, 4) << "some allocations have failed";
  }
}

}  // namespace allocation_test
}  // namespace fcap::ledger
