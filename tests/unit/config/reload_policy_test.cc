#include "config/reload_policy.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcap::config {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr ReloadPolicy kHalf{0.5, false};

TEST(ReloadPolicy, TheFirstRuleSetIsTakenEvenWhenItIsEmpty) {
  EXPECT_TRUE(judge_reload(std::nullopt, {1, 0, 0}, kHalf).accepted);
}

TEST(ReloadPolicy, AnEmptyOneIsRefusedWhereTheLastWasNot) {
  const ReloadJudgement judgement = judge_reload(RuleSetSize{1, 1, 1}, {2, 0, 1}, kHalf);
  EXPECT_FALSE(judgement.accepted);
  EXPECT_THAT(judgement.remark, HasSubstr("accept_any_shrink")) << "the override is named";
}

TEST(ReloadPolicy, AnEmptyOneIsRefusedEvenWhereShrinkingIsNot) {
  EXPECT_FALSE(judge_reload(RuleSetSize{1, 5, 0}, {2, 0, 0}, {0.0, false}).accepted);
}

TEST(ReloadPolicy, AnEmptyOneIsTakenWhereTheLastWasEmptyToo) {
  EXPECT_TRUE(judge_reload(RuleSetSize{1, 0, 0}, {2, 0, 0}, kHalf).accepted);
}

TEST(ReloadPolicy, ShrinkingToTheShareIsTakenAndBelowItIsRefused) {
  EXPECT_TRUE(judge_reload(RuleSetSize{1, 10, 0}, {2, 5, 0}, kHalf).accepted);
  EXPECT_FALSE(judge_reload(RuleSetSize{1, 10, 0}, {2, 4, 0}, kHalf).accepted);
  EXPECT_FALSE(judge_reload(RuleSetSize{1, 10, 0}, {2, 9, 0}, {1.0, false}).accepted);
  EXPECT_TRUE(judge_reload(RuleSetSize{1, 10, 0}, {2, 1, 0}, {0.0, false}).accepted);
}

TEST(ReloadPolicy, GrowingIsTakenWithoutARemark) {
  const ReloadJudgement judgement = judge_reload(RuleSetSize{1, 10, 10}, {2, 1000, 99}, kHalf);
  EXPECT_TRUE(judgement.accepted);
  EXPECT_EQ(judgement.remark, "");
}

TEST(ReloadPolicy, ALargeCatalogThatShrinksIsRefusedAndASmallOneIsNot) {
  EXPECT_FALSE(judge_reload(RuleSetSize{1, 2, 20}, {2, 2, 9}, kHalf).accepted);
  EXPECT_FALSE(judge_reload(RuleSetSize{1, 2, 20}, {2, 2, 0}, {0.0, false}).accepted);
  EXPECT_TRUE(judge_reload(RuleSetSize{1, 2, 20}, {2, 2, 10}, kHalf).accepted);
  EXPECT_TRUE(judge_reload(RuleSetSize{1, 2, 19}, {2, 2, 0}, kHalf).accepted);
}

TEST(ReloadPolicy, TheOverrideTakesAnythingAndSaysSo) {
  for (const RuleSetSize next : {RuleSetSize{2, 0, 0}, RuleSetSize{2, 1, 1}}) {
    const ReloadJudgement judgement = judge_reload(RuleSetSize{1, 100, 100}, next, {0.5, true});
    EXPECT_TRUE(judgement.accepted);
    EXPECT_THAT(judgement.remark, HasSubstr("accept_any_shrink"));
  }
}

TEST(ReloadPolicy, AnOlderVersionIsTakenAndRemarkedOn) {
  const ReloadJudgement judgement = judge_reload(RuleSetSize{9, 10, 10}, {7, 10, 10}, kHalf);
  EXPECT_TRUE(judgement.accepted);
  EXPECT_THAT(judgement.remark, HasSubstr("from 9 to 7"));
}

TEST(ReloadPolicy, AnOlderVersionThatIsEmptyIsRefused) {
  EXPECT_FALSE(judge_reload(RuleSetSize{9, 10, 10}, {7, 0, 0}, kHalf).accepted);
}

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

}  // namespace
}  // namespace fcap::config
