#include "config/reload_policy.h"

#include <array>
#include <initializer_list>
#include <memory>
#include <string>

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

struct Members {
  std::string segment;
  int count = 0;
};

std::shared_ptr<const SegmentSet> segments(std::initializer_list<Members> all) {
  SegmentSetBuilder builder;
  for (const Members& members : all) {
    EXPECT_TRUE(builder.name(members.segment).ok());
    for (int i = 0; i < members.count; ++i) {
      EXPECT_TRUE(builder.add(members.segment, "u" + std::to_string(i)).ok());
    }
  }
  return std::move(builder).finish(1);
}

TEST(SegmentPolicy, TheFirstSetIsTakenEvenWhenItIsEmpty) {
  EXPECT_TRUE(judge_segments(nullptr, *segments({}), kHalf).accepted);
}

TEST(SegmentPolicy, ASegmentWithMembersMustNotVanish) {
  const auto last = segments({{"optout", 1}, {"vip", 1000}});
  const ReloadJudgement judgement = judge_segments(last.get(), *segments({{"vip", 1000}}), kHalf);
  EXPECT_FALSE(judgement.accepted);
  EXPECT_THAT(judgement.remark, HasSubstr("\"optout\" has vanished"));
  EXPECT_THAT(judgement.remark, HasSubstr("accept_any_shrink")) << "the override is named";
  EXPECT_FALSE(judge_segments(last.get(), *segments({}), kHalf).accepted);
}

TEST(SegmentPolicy, ASegmentIsRemovedOnPurposeByEmptyingItFirst) {
  const auto last = segments({{"optout", 1}, {"vip", 1000}});
  const auto emptied = segments({{"optout", 0}, {"vip", 1000}});
  EXPECT_TRUE(judge_segments(last.get(), *emptied, kHalf).accepted);
  EXPECT_TRUE(judge_segments(emptied.get(), *segments({{"vip", 1000}}), kHalf).accepted);
}

TEST(SegmentPolicy, AShrunkenSetIsRefusedFromTwentyMembersOn) {
  EXPECT_FALSE(judge_segments(segments({{"s", 20}}).get(), *segments({{"s", 9}}), kHalf).accepted);
  EXPECT_TRUE(judge_segments(segments({{"s", 20}}).get(), *segments({{"s", 10}}), kHalf).accepted);
  EXPECT_TRUE(judge_segments(segments({{"s", 19}}).get(), *segments({{"s", 0}}), kHalf).accepted);
  EXPECT_FALSE(
      judge_segments(segments({{"s", 20}}).get(), *segments({{"s", 0}}), {0.0, false}).accepted);
}

TEST(SegmentPolicy, TheOverrideTakesAnySetAndSaysSo) {
  const ReloadJudgement judgement =
      judge_segments(segments({{"s", 100}}).get(), *segments({}), {0.5, true});
  EXPECT_TRUE(judgement.accepted);
  EXPECT_THAT(judgement.remark, HasSubstr("vanished"));
}

}  // namespace
}  // namespace fcap::config
