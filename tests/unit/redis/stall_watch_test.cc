#include "redis/stall_watch.h"

#include <gtest/gtest.h>

namespace fcap::redis {
namespace stall_watch_test {

using std::chrono::milliseconds;
using LateCause = StallWatch::LateCause;
using TimePoint = StallWatch::TimePoint;

constexpr TimePoint kStart{std::chrono::hours{1}};

class StallWatchTest : public ::testing::Test {
 protected:
  void SetUp() override { watch_.woke(kStart, TimePoint::max(), kStart); }

  StallWatch watch_;
};

TEST_F(StallWatchTest, NothingIsKnownBeforeTheFirstSleep) {
  EXPECT_EQ(StallWatch().cause(kStart), LateCause::kNone);
}

TEST_F(StallWatchTest, WorkThatTakesLongIsSeenAtOnce) {
  EXPECT_EQ(watch_.cause(kStart + milliseconds{4}), LateCause::kNone);
  EXPECT_EQ(watch_.cause(kStart + milliseconds{5}), LateCause::kBusy);
}

// What it kept waiting is found only in the round after it.
TEST_F(StallWatchTest, WorkThatTookLongIsRememberedForOneRound) {
  const TimePoint asleep = kStart + milliseconds{300};
  watch_.woke(asleep, TimePoint::min(), asleep);
  EXPECT_EQ(watch_.cause(asleep), LateCause::kBusy);
  watch_.woke(asleep + milliseconds{1}, TimePoint::min(), asleep + milliseconds{1});
  EXPECT_EQ(watch_.cause(asleep + milliseconds{1}), LateCause::kNone);
}

TEST_F(StallWatchTest, WakingUpLongAfterThePlanIsOversleeping) {
  const TimePoint planned = kStart + milliseconds{50};
  watch_.woke(kStart, planned, planned + milliseconds{19});
  EXPECT_EQ(watch_.cause(planned + milliseconds{19}), LateCause::kNone);
  watch_.woke(planned + milliseconds{20}, planned, planned + milliseconds{40});
  EXPECT_EQ(watch_.cause(planned + milliseconds{40}), LateCause::kOverslept);
}

TEST_F(StallWatchTest, ALookThatShouldNotHaveSleptCanOversleep) {
  watch_.woke(kStart, TimePoint::min(), kStart + milliseconds{20});
  EXPECT_EQ(watch_.cause(kStart + milliseconds{20}), LateCause::kOverslept);
}

TEST_F(StallWatchTest, SleepWithoutAPlanEndsInTime) {
  const TimePoint later = kStart + std::chrono::hours{1};
  watch_.woke(kStart, TimePoint::max(), later);
  EXPECT_EQ(watch_.cause(later), LateCause::kNone);
}

}  // namespace stall_watch_test
}  // namespace fcap::redis
