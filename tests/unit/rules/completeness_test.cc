#include "rules/completeness.h"

#include <gtest/gtest.h>

namespace fcap::rules {
namespace completeness_test {

constexpr Instant kLost = instant_from_ms(1'000'000);
constexpr std::chrono::milliseconds kOne{1};

TEST(Completeness, CoversEverythingUnlessSomethingIsMissing) {
  EXPECT_TRUE(Completeness().covers(Instant::min()));
  EXPECT_TRUE(Completeness(std::nullopt).covers(Instant::min()));
  EXPECT_TRUE(Completeness().covers_unknown(3));
}

TEST(Completeness, CoversEventsFromTheInstantBeforeWhichTheyMayBeMissing) {
  EXPECT_TRUE(Completeness(kLost).covers(kLost));
  EXPECT_FALSE(Completeness(kLost).covers(kLost - kOne));
  EXPECT_FALSE(Completeness(Instant::max()).covers(kLost)) << "all events may be missing";
}

TEST(Completeness, IsThatOfTheLaterOfLossAndTrimming) {
  const Completeness trimmed_later = Completeness(kLost).trimmed(kLost + kOne);
  EXPECT_FALSE(trimmed_later.covers(kLost));
  EXPECT_TRUE(trimmed_later.covers(kLost + kOne));
  const Completeness lost_later = Completeness(kLost).trimmed(kLost - kOne);
  EXPECT_FALSE(lost_later.covers(kLost - kOne));
  EXPECT_TRUE(lost_later.covers(kLost));
  EXPECT_TRUE(Completeness(kLost).trimmed(std::nullopt).covers(kLost));
}

TEST(Completeness, OfAReplicaCoversNoWindow) {
  EXPECT_FALSE(Completeness::of_replica(kLost).covers(kLost - kOne));
}

TEST(Completeness, VouchesForAnUnknownWindowOnlyWhereNothingIsCounted) {
  EXPECT_FALSE(Completeness(kLost).covers_unknown(1));
  EXPECT_TRUE(Completeness(kLost).covers_unknown(0));
}

}  // namespace completeness_test
}  // namespace fcap::rules
