#include "base/poll_schedule.h"

#include <chrono>

#include <gtest/gtest.h>

namespace fcap::base {
namespace poll_schedule_test {

using std::chrono::milliseconds;

TEST(PollSchedule, PollsWithinATenthOfTheInterval) {
  PollSchedule schedule(milliseconds{60'000});
  EXPECT_EQ(schedule.after_answer(0.0), milliseconds{54'000});
  EXPECT_EQ(schedule.after_answer(0.5), milliseconds{60'000});
  EXPECT_LE(schedule.after_answer(0.999), milliseconds{66'000});
}

TEST(PollSchedule, BacksOffFromASecondToTheInterval) {
  PollSchedule schedule(milliseconds{60'000});
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    EXPECT_EQ(schedule.after_failure(1.0), std::chrono::seconds{seconds});
  }
}

TEST(PollSchedule, HalfOfABackoffIsRandom) {
  PollSchedule schedule(milliseconds{60'000});
  EXPECT_EQ(schedule.after_failure(0.0), milliseconds{500});
  EXPECT_EQ(schedule.after_failure(0.0), milliseconds{1000});
}

TEST(PollSchedule, AnAnswerStartsTheBackoffAfresh) {
  PollSchedule schedule(milliseconds{60'000});
  (void)schedule.after_failure(1.0);
  (void)schedule.after_failure(1.0);
  (void)schedule.after_answer(0.5);
  EXPECT_EQ(schedule.after_failure(1.0), milliseconds{1000});
}

TEST(PollSchedule, NeverBacksOffBeyondAShortInterval) {
  PollSchedule schedule(milliseconds{100});
  EXPECT_EQ(schedule.after_failure(1.0), milliseconds{100});
  EXPECT_EQ(schedule.after_failure(1.0), milliseconds{100});
}

TEST(PollSchedule, AnIntervalOfZeroDoesNotSpin) {
  PollSchedule schedule(milliseconds{0});
  EXPECT_GE(schedule.after_answer(0.0), milliseconds{9});
  EXPECT_GE(schedule.after_failure(0.0), milliseconds{5});
}

}  // namespace poll_schedule_test
}  // namespace fcap::base
