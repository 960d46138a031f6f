#include "redis/slot_set.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/seed.h"
#include "updater/marks/missing_offsets.h"

namespace fcap::updater {
namespace slot_set_test {

constexpr int kSlots = 40;

std::set<int> slots_of(const SlotSet& slots) {
  std::set<int> all;
  for (int slot = 0; slot < SlotSet::kSlots; ++slot) {
    if (slots.contains(slot)) all.insert(slot);
  }
  return all;
}

SlotSet some_slots(std::mt19937_64& random) {
  SlotSet slots;
  for (auto n = random() % 6; n > 0; --n) {
    const auto first = static_cast<int>(random() % kSlots);
    slots |= SlotSet(first, first + static_cast<int>(random() % 5));
  }
  return slots;
}

TEST(SlotSetTest, AreSets) {
  std::mt19937_64 random(test_seed(1));
  for (int round = 0; round < 200; ++round) {
    const SlotSet a = some_slots(random);
    const SlotSet b = some_slots(random);
    std::set<int> sum = slots_of(a);
    std::set<int> rest;
    std::set<int> common;
    for (const int slot : slots_of(a)) (b.contains(slot) ? common : rest).insert(slot);
    for (const int slot : slots_of(b)) sum.insert(slot);
    ASSERT_EQ(slots_of(a | b), sum);
    ASSERT_EQ(slots_of(a - b), rest);
    ASSERT_EQ(slots_of(a & b), common);
    ASSERT_EQ((a | b).size(), sum.size());
    ASSERT_EQ(a.covers(b), common == slots_of(b));
    ASSERT_EQ(a.meets(b), !common.empty());
    ASSERT_EQ(SlotSet::read(a.text()), a);
    ASSERT_EQ((a | b) == (b | a), true) << "one set has one form";
  }
}

TEST(SlotSetTest, HaveOneText) {
  EXPECT_EQ((SlotSet(0, 5460) | SlotSet(7000, 7000)).text(), "0-5460,7000");
  EXPECT_EQ(SlotSet::all().text(), "0-16383");
  EXPECT_EQ(SlotSet::read(""), SlotSet());
  for (const char* strange : {"1-", "-1", "5-4", "5-5", "0-16384", "1,2", "1-3,3", "3,1", "1,",
                              ",1", "01", "1-2-3", "a", "1 ", "+1"}) {
    EXPECT_FALSE(SlotSet::read(strange)) << strange;
  }
}

TEST(MissingOffsetsTest, AreOffsetsForSlots) {
  std::mt19937_64 random(test_seed(1));
  for (int round = 0; round < 100; ++round) {
    MissingOffsets missing;
    std::set<std::pair<int, std::int64_t>> expected;
    for (int i = 0; i < 20; ++i) {
      const SlotSet slots = some_slots(random);
      const auto from = static_cast<std::int64_t>(random() % 30);
      const Gap gap{from, from + static_cast<std::int64_t>(random() % 9)};
      const bool add = random() % 3 != 0;
      add ? missing.add(slots, gap) : missing.remove(slots, gap);
      for (const int slot : slots_of(slots)) {
        for (std::int64_t offset = gap.from; offset < gap.to; ++offset) {
          if (add) expected.emplace(slot, offset);
          if (!add) expected.erase({slot, offset});
        }
      }
    }
    std::set<std::pair<int, std::int64_t>> there;
    SlotSet seen;
    for (const MissingOffsets::MissingStretch& stretch : missing.stretches()) {
      ASSERT_FALSE(stretch.gaps.empty());
      ASSERT_FALSE(seen.meets(stretch.slots));
      seen |= stretch.slots;
      for (const int slot : slots_of(stretch.slots)) {
        ASSERT_EQ(missing.of(SlotSet(slot, slot)), stretch.gaps);
        for (const Gap& gap : stretch.gaps) {
          for (std::int64_t at = gap.from; at < gap.to; ++at) there.emplace(slot, at);
        }
      }
    }
    ASSERT_EQ(there, expected);
    ASSERT_EQ(missing.slots(), seen);
    ASSERT_EQ(missing.empty(), expected.empty());
  }
}

TEST(MissingOffsetsTest, HoweverManyAreAddedTheyStayInFewPieces) {
  std::mt19937_64 random(test_seed(1));
  MissingOffsets missing;
  std::set<std::int64_t> expected;
  std::int64_t next = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t from = next + static_cast<std::int64_t>(random() % 9);
    next = from + 1 + static_cast<std::int64_t>(random() % 9);
    missing.add({0, 9}, {from, next});
    for (std::int64_t offset = from; offset < next; ++offset) expected.insert(offset);
  }
  const Gaps gaps = missing.of({3, 3});
  EXPECT_LE(gaps.size(), 64U);
  EXPECT_EQ(gaps.front().from, *expected.begin());
  EXPECT_EQ(gaps.back().to, next);
  for (const std::int64_t offset : expected) {
    ASSERT_TRUE(gaps_covered({{offset, offset + 1}}, gaps)) << offset;
  }
  EXPECT_LT(offsets_in(gaps), next) << "the widest holes stay";
}

}  // namespace slot_set_test
}  // namespace fcap::updater
