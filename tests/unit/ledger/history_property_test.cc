#include <algorithm>

#include <gtest/gtest.h>

#include "unit/ledger/reference.h"

namespace fcap::ledger {
namespace history_property_test {

using testing::decoded;
using testing::entries_of;
using testing::Reference;

constexpr int kRounds = 400;

std::string compacted(const Ledger& ledger) {
  return compact(ledger, {}, {}).record;
}

// Delivers a history in a random order, some of it again, and compacts whenever it feels like it.
std::string delivered(std::mt19937_64& random, std::vector<Entry> history) {
  std::shuffle(history.begin(), history.end(), random);
  std::string record;
  for (std::size_t i = 0; i < history.size(); ++i) {
    append_entries({&history[i], 1}, record);
    if (random() % 4 == 0) append_entries({&history[random() % (i + 1)], 1}, record);
    if (random() % 20 == 0) record = compact(decoded(record), record, {.trim_now = {}}).record;
  }
  return record;
}

TEST(LedgerHistory, OrderDuplicatesAndCompactionChangeNothing) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < kRounds; ++round) {
    const auto history = random_history(random, testing::random_shape(random));
    Reference reference;
    for (const Entry& entry : history) reference.add(entry);

    const Ledger ledger = decoded(delivered(random, history));
    ASSERT_EQ(entries_of(ledger), reference.entries()) << "round " << round;
    ASSERT_EQ(entries_of(decoded(compacted(ledger))), reference.entries()) << "round " << round;
  }
}

TEST(LedgerHistory, OneSetOfEntriesHasOneCompactedForm) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < kRounds; ++round) {
    const auto history = random_history(random, testing::random_shape(random));
    const std::string one = compacted(decoded(delivered(random, history)));
    const std::string other = compacted(decoded(delivered(random, history)));
    ASSERT_EQ(one, other) << "round " << round;
    ASSERT_EQ(compacted(decoded(one)), one) << "round " << round;
    ASSERT_EQ(compacted_bytes(one), one.size());
  }
}

TEST(LedgerHistory, MergingOneByOneEqualsDecodingAtOnce) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < kRounds; ++round) {
    const auto history = random_history(random, testing::random_shape(random));
    Ledger merged;
    for (const Entry& entry : history) merged.merge(entry);
    ASSERT_EQ(entries_of(merged), entries_of(decoded(testing::tail_of(history))));
  }
}

TEST(LedgerHistory, ErasureAppliesHoweverLateAnEntryArrives) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < kRounds; ++round) {
    const auto shape = testing::random_shape(random);
    const auto history = random_history(random, shape);
    const Instant until =
        shape.first +
        std::chrono::milliseconds(random() % (static_cast<std::uint64_t>(shape.span.count()) + 1));
    Reference reference;
    for (const Entry& entry : history) reference.add(entry);
    reference.erase_before(until);

    const std::size_t split = random() % (history.size() + 1);
    const std::vector<Entry> before(history.begin(), history.begin() + static_cast<long>(split));
    const std::vector<Entry> after(history.begin() + static_cast<long>(split), history.end());
    std::string record = testing::tail_of(before);
    append_erased_before(until, record);
    if (random() % 2 == 0) record = compacted(decoded(record));
    record += testing::tail_of(after);
    ASSERT_EQ(entries_of(decoded(record)), reference.entries()) << "round " << round;

    Ledger in_memory;
    for (const Entry& entry : before) in_memory.merge(entry);
    in_memory.erase_before(until);
    for (const Entry& entry : after) in_memory.merge(entry);
    ASSERT_EQ(compacted(in_memory), compacted(decoded(record))) << "round " << round;
  }
}

// A ledger of random contents: entries, sometimes an erasure, sometimes a mark of a size trim.
Ledger random_ledger(std::mt19937_64& random, const testing::HistoryShape& shape) {
  std::string record = testing::tail_of(random_history(random, shape));
  const auto random_time = [&] {
    return shape.first + std::chrono::milliseconds(
                             random() % (static_cast<std::uint64_t>(shape.span.count()) + 1));
  };
  if (random() % 3 == 0) append_erased_before(random_time(), record);
  if (random() % 3 == 0) {
    record = compact(decoded(record), record, {.trim_now = {}, .record_bytes_max = 200}).record;
  }
  return decoded(record);
}

TEST(LedgerMerge, IsCommutativeAssociativeAndIdempotent) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < kRounds; ++round) {
    auto shape = testing::random_shape(random);
    shape.entries = std::min<std::size_t>(shape.entries, 120);
    const Ledger a = random_ledger(random, shape);
    const Ledger b = random_ledger(random, shape);
    const Ledger c = random_ledger(random, shape);
    const auto merged = [](const Ledger& x, const Ledger& y) {
      Ledger sum = x;
      sum.merge(y);
      return sum;
    };
    ASSERT_EQ(compacted(merged(a, b)), compacted(merged(b, a))) << "round " << round;
    ASSERT_EQ(compacted(merged(merged(a, b), c)), compacted(merged(a, merged(b, c))))
        << "round " << round;
    ASSERT_EQ(compacted(merged(a, a)), compacted(a)) << "round " << round;
    ASSERT_EQ(compacted(merged(merged(a, b), b)), compacted(merged(a, b))) << "round " << round;
    // Two regions' records put behind one another are their merge, too.
    ASSERT_EQ(compacted(decoded(compacted(a) + compacted(b))), compacted(merged(a, b)))
        << "round " << round;
  }
}

}  // namespace history_property_test
}  // namespace fcap::ledger
