#include "updater/marks/gaps.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace fcap::updater {
namespace gaps_test {

std::set<std::int64_t> offsets_of(const Gaps& gaps) {
  std::set<std::int64_t> all;
  for (const Gap& gap : gaps) {
    for (std::int64_t offset = gap.from; offset < gap.to; ++offset) all.insert(offset);
  }
  return all;
}

bool ascending_and_apart(const Gaps& gaps) {
  for (std::size_t i = 0; i < gaps.size(); ++i) {
    if (gaps[i].from >= gaps[i].to) return false;
    if (i > 0 && gaps[i].from <= gaps[i - 1].to) return false;
  }
  return true;
}

TEST(GapsTest, AreSetsOfOffsets) {
  std::mt19937_64 random(test_seed(1));
  for (int round = 0; round < 200; ++round) {
    Gaps gaps;
    std::set<std::int64_t> expected;
    for (int i = 0; i < 20; ++i) {
      const auto from = static_cast<std::int64_t>(random() % 60);
      const Gap gap{from, from + static_cast<std::int64_t>(random() % 12)};
      const bool add = random() % 3 != 0;
      gaps = add ? gaps_with(gaps, gap) : gaps_without(gaps, gap);
      for (std::int64_t offset = gap.from; offset < gap.to; ++offset) {
        if (add) expected.insert(offset);
        if (!add) expected.erase(offset);
      }
      ASSERT_TRUE(ascending_and_apart(gaps));
      ASSERT_EQ(offsets_of(gaps), expected);
      ASSERT_EQ(offsets_in(gaps), static_cast<std::int64_t>(expected.size()));
      const std::set<std::int64_t> below(expected.begin(), expected.lower_bound(from));
      ASSERT_EQ(offsets_of(gaps_below(gaps, from)), below);
      ASSERT_TRUE(gaps_covered(gaps_below(gaps, from), gaps));
      ASSERT_EQ(gaps_covered(gaps, gaps_below(gaps, from)), below.size() == expected.size());
      const Gaps merged = gaps_merged(gaps, 3);
      ASSERT_LE(merged.size(), 3U);
      ASSERT_TRUE(ascending_and_apart(merged));
      ASSERT_TRUE(gaps_covered(gaps, merged));
    }
  }
}

TEST(GapsTest, TheNearestNeighboursBecomeOne) {
  EXPECT_EQ(gaps_merged({{0, 10}, {20, 30}, {31, 40}}, 2), (Gaps{{0, 10}, {20, 40}}));
}

}  // namespace gaps_test
}  // namespace fcap::updater
