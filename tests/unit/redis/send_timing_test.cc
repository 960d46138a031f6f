#include "redis/send_timing.h"

#include <gtest/gtest.h>

namespace fcap::redis {
namespace send_timing_test {

using std::chrono::microseconds;
using TimePoint = SendTiming::TimePoint;

constexpr TimePoint kNow{std::chrono::hours{1}};
constexpr std::size_t kMin = SendTiming::kTogetherMin;
constexpr std::size_t kMax = SendTiming::kTogetherMax;

TEST(SendTiming, HalfOfWhatIsInFlightIsEnoughWithinBounds) {
  EXPECT_FALSE(SendTiming::is_enough(kMin - 1, 0));
  EXPECT_TRUE(SendTiming::is_enough(kMin, 0));
  EXPECT_FALSE(SendTiming::is_enough(49, 100));
  EXPECT_TRUE(SendTiming::is_enough(50, 100));
  EXPECT_FALSE(SendTiming::is_enough(kMax - 1, 10'000));
  EXPECT_TRUE(SendTiming::is_enough(kMax, 10'000));
}

TEST(SendTiming, FewRequestsForABusyNodeAreHeldBack) {
  SendTiming timing;
  EXPECT_TRUE(timing.holds_back(1, 1, kNow));
  EXPECT_TRUE(timing.holds_back(kMin - 1, 1, kNow));
}

TEST(SendTiming, ANodeWithNothingToWorkOnGetsThemAtOnce) {
  EXPECT_FALSE(SendTiming().holds_back(1, 0, kNow));
}

TEST(SendTiming, EnoughRequestsAreSentAtOnce) {
  EXPECT_FALSE(SendTiming().holds_back(kMin, 1, kNow));
}

TEST(SendTiming, WithoutRequestsNothingIsHeldBack) {
  EXPECT_FALSE(SendTiming().holds_back(0, 1, kNow));
}

// However many events other sockets have, and whatever joins the first of them meanwhile.
TEST(SendTiming, NothingIsHeldBackForLong) {
  SendTiming timing;
  EXPECT_TRUE(timing.holds_back(1, 1, kNow));
  EXPECT_TRUE(timing.holds_back(2, 1, kNow + SendTiming::kHeldMax - microseconds{1}));
  EXPECT_FALSE(timing.holds_back(3, 1, kNow + SendTiming::kHeldMax));
}

TEST(SendTiming, TheTimeBeginsAgainOnceTheyAreSent) {
  const TimePoint later = kNow + SendTiming::kHeldMax;
  SendTiming told;
  EXPECT_TRUE(told.holds_back(1, 1, kNow));
  told.sent();
  EXPECT_TRUE(told.holds_back(1, 1, later));

  SendTiming seen;
  EXPECT_TRUE(seen.holds_back(1, 1, kNow));
  EXPECT_FALSE(seen.holds_back(0, 1, kNow));
  EXPECT_TRUE(seen.holds_back(1, 1, later));

  SendTiming over;
  EXPECT_TRUE(over.holds_back(1, 1, kNow));
  EXPECT_FALSE(over.holds_back(1, 1, later));
  EXPECT_TRUE(over.holds_back(1, 1, later + microseconds{1})) << "these are others";
}

}  // namespace send_timing_test
}  // namespace fcap::redis
