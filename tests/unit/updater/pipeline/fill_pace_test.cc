#include "updater/pipeline/fill_pace.h"

#include <utility>

#include <gtest/gtest.h>

namespace fcap::updater {
namespace fill_pace_test {

using namespace std::chrono_literals;
using Clock = FillPace::Clock;

// A main loop in which everything else takes `others` a turn, and a step of filling takes `step`.
class Loop {
 public:
  Loop(Clock::duration others, Clock::duration step) : others_(others), step_(step) {}

  // The share of the time that is filled in; `each_turn` says what is live.
  template <typename EachTurn>
  double share_filled(Clock::duration time, EachTurn&& each_turn) {
    const Clock::time_point until = now_ + time;
    Clock::duration filled{0};
    while (now_ < until) {
      each_turn(pace_, now_);
      if (pace_.due(now_)) {
        now_ += step_;
        filled += step_;
        pace_.worked(step_);
      }
      now_ += others_;
    }
    return std::chrono::duration<double>(filled) / std::chrono::duration<double>(time);
  }

 private:
  FillPace pace_;
  Clock::time_point now_{100s};
  Clock::duration others_;
  Clock::duration step_;
};

void nothing_live(FillPace&, Clock::time_point) {}
void live(FillPace& pace, Clock::time_point now) {
  pace.live(now);
}
void live_and_late(FillPace& pace, Clock::time_point now) {
  pace.live(now);
  pace.late(now);
}

TEST(FillPaceTest, WithNothingLiveEachTurnFills) {
  EXPECT_NEAR(Loop(1ms, 2ms).share_filled(10s, nothing_live), 2.0 / 3, 0.01);
}

TEST(FillPaceTest, BesideLiveMessagesATenthOfTheTimeIsFilledIn) {
  for (const auto others : {1ms, 5ms, 10ms}) {
    EXPECT_NEAR(Loop(others, 2ms).share_filled(10s, live), 0.1, 0.01) << others.count();
  }
}

TEST(FillPaceTest, BesideLateMessagesATwentieth) {
  EXPECT_NEAR(Loop(5ms, 1ms).share_filled(10s, live_and_late), 0.05, 0.01);
  EXPECT_NEAR(Loop(40ms, 4ms).share_filled(10s, live_and_late), 0.05, 0.01);
}

TEST(FillPaceTest, FillsOnHoweverLongTheTurnsAreAndTheSteps) {
  EXPECT_GT(Loop(1s, 1ms).share_filled(60s, live_and_late), 0.0);
  EXPECT_GT(Loop(1ms, 1s).share_filled(60s, live_and_late), 0.05);
}

TEST(FillPaceTest, ALiveMessageCountsForAWhileOnly) {
  Loop loop(1ms, 2ms);
  EXPECT_NEAR(loop.share_filled(FillPace::kRemembered,
                                [first = true](FillPace& pace, auto now) mutable {
                                  if (std::exchange(first, false)) pace.live(now);
                                }),
              0.1, 0.02);
  EXPECT_NEAR(loop.share_filled(10s, nothing_live), 2.0 / 3, 0.01);
}

TEST(FillPaceTest, WhatWasNotUsedIsNotSavedUp) {
  FillPace pace;
  Clock::time_point now{100s};
  pace.live(now);
  ASSERT_TRUE(pace.due(now));
  now += 1h;
  pace.live(now);
  ASSERT_TRUE(pace.due(now));
  pace.worked(FillPace::kSavedMax);
  EXPECT_FALSE(pace.due(now));
}

}  // namespace fill_pace_test
}  // namespace fcap::updater
