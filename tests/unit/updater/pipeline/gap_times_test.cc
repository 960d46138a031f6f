#include "updater/pipeline/gap_times.h"

#include <gtest/gtest.h>

namespace fcap::updater {
namespace gap_times_test {

using std::chrono::hours;
using Missing = std::map<std::int32_t, std::optional<redis::MissingEvents>>;

constexpr Instant kThen = instant_from_ms(1'700'000'000'000);

void look(GapTimes& times, std::initializer_list<GapEnd> gaps, Instant latest) {
  times.look(std::span(gaps.begin(), gaps.size()), latest);
}

TEST(GapTimes, AGapIsFoundLackingWhatWasAcceptedUntilThen) {
  GapTimes times{hours{0}};
  look(times, {{0, 100}, {1, std::nullopt}}, kThen);
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen}, {1, std::nullopt}}));
  look(times, {{0, 100}, {1, std::nullopt}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen}, {1, std::nullopt}}));
  look(times, {{0, std::nullopt}, {1, std::nullopt}}, kThen + hours{2});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, std::nullopt}, {1, std::nullopt}}));
}

TEST(GapTimes, AFilledPieceLeavesWhatIsOlderThanItsNewest) {
  GapTimes times{hours{0}};
  look(times, {{0, 100}}, kThen);
  times.filled(0, 70, kThen - hours{3});
  look(times, {{0, 70}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen - hours{3}}}));
  // One producer's clock is ahead; and nothing at all says nothing.
  times.filled(0, 40, kThen + hours{9});
  times.filled(0, 10, std::nullopt);
  look(times, {{0, 10}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen - hours{3}}}));
}

TEST(GapTimes, ASecondLossBeginsAgainFromThen) {
  GapTimes times{hours{0}};
  look(times, {{0, 100}}, kThen);
  times.filled(0, 70, kThen - hours{3});
  // Lost again before anybody looked, and to the same offset.
  look(times, {{0, 100}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen + hours{1}}}));
}

TEST(GapTimes, AGapThatProvedSmallerAndThenGrowsBeginsAgainFromThen) {
  GapTimes times{hours{0}};
  look(times, {{0, 1000}}, kThen);
  look(times, {{0, 100}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen}}));
  look(times, {{0, 200}}, kThen + hours{2});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen + hours{2}}}));
}

// A shard whose connection is lost may lack its newest events, however old the rest of the gap is.
TEST(GapTimes, AGapThatConcernsMoreUsersBeginsAgainFromThen) {
  const SlotSet some{0, 99};
  GapTimes times{hours{0}};
  look(times, {{0, 100, some}}, kThen);
  times.filled(0, 70, kThen - hours{3});
  look(times, {{0, 70, SlotSet::all()}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, {{kThen + hours{1}, SlotSet::all()}}}}));
  times.filled(0, 40, kThen - hours{4});
  look(times, {{0, 40, some}}, kThen + hours{2});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, {{kThen - hours{4}, some}}}}));
}

TEST(GapTimes, OfAPartitionThatIsNotItsOwnItSaysNothing) {
  GapTimes times{hours{0}};
  look(times, {{0, 100}, {1, 100}}, kThen);
  look(times, {{1, 100}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{1, kThen}}));
  times.filled(0, 50, kThen - hours{1});
  look(times, {{0, 50}, {1, 100}}, kThen + hours{2});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen + hours{2}}, {1, kThen}}));
}

TEST(GapTimes, SaysOfWhichUsersEventsMayBeMissingNow) {
  GapTimes times{hours{0}};
  using redis::MissingEvents;
  look(times, {{0, 100, {0, 9}}}, kThen);
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, MissingEvents{kThen, {0, 9}}}}));
  // Others lack events of the same messages.
  look(times, {{0, 100, {0, 19}}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().missing_before,
            (Missing{{0, MissingEvents{kThen + hours{1}, {0, 19}}}}));
  times.filled(0, 70, kThen - hours{3});
  look(times, {{0, 70, {10, 19}}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().missing_before,
            (Missing{{0, MissingEvents{kThen - hours{3}, {10, 19}}}}));
  look(times, {{0, 71}}, kThen + hours{2});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen + hours{2}}}));
}

TEST(GapTimes, ProducersClocksMayBeAhead) {
  GapTimes times{hours{1}};
  look(times, {{0, 100}}, kThen);
  times.filled(0, 70, kThen - hours{3});
  EXPECT_EQ(times.open_gaps().missing_before, (Missing{{0, kThen - hours{2}}}));
}

void expire(GapTimes& times, std::initializer_list<ExpiredEvents> found, Instant latest) {
  times.expired(std::span(found.begin(), found.size()), latest);
}

TEST(GapTimes, WhatHasExpiredStaysMissing) {
  GapTimes times{hours{1}};
  EXPECT_EQ(times.open_gaps().expired, std::nullopt);
  expire(times, {{0, kThen - hours{5}, {0, 9}}}, kThen);
  EXPECT_EQ(times.open_gaps().expired, redis::MissingEvents(kThen - hours{4}, {0, 9}));
  look(times, {{0, std::nullopt}}, kThen);
  EXPECT_EQ(times.open_gaps().expired, redis::MissingEvents(kThen - hours{4}, {0, 9}));
  // One statement is about all of them.
  expire(times, {{1, kThen - hours{3}, {10, 19}}, {1, kThen - hours{6}, {5, 6}}}, kThen);
  EXPECT_EQ(times.open_gaps().expired, redis::MissingEvents(kThen - hours{2}, {0, 19}));
}

TEST(GapTimes, WhatHasExpiredAtAnUnknownTimeIsAsOldAsTheRestOfItsGap) {
  GapTimes times{hours{1}};
  look(times, {{0, 100}, {1, std::nullopt}}, kThen);
  times.filled(0, 70, kThen - hours{6});
  expire(times, {{0}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().expired, redis::MissingEvents(kThen - hours{5}));
  expire(times, {{1}}, kThen + hours{1});
  EXPECT_EQ(times.open_gaps().expired, redis::MissingEvents(kThen + hours{1}));
  // Nothing is later than all events.
  expire(times, {{1, kThen + hours{9}}}, kThen + hours{2});
  EXPECT_EQ(times.open_gaps().expired, redis::MissingEvents(kThen + hours{2}));
}

}  // namespace gap_times_test
}  // namespace fcap::updater
