#include "sources/reload_policy.h"

#include <array>
#include <initializer_list>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcap::sources {
namespace reload_policy_test {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr ReloadPolicy kHalf{0.5, false};

TEST(ReloadPolicy, TheFirstRuleSetIsTakenEvenWhenItIsEmpty) {
  EXPECT_TRUE(decide_reload(std::nullopt, {1, 0, 0}, kHalf).accepted);
}

TEST(ReloadPolicy, AnEmptyOneIsRefusedWhereTheLastWasNot) {
  const ReloadDecision judgement = decide_reload(RuleSetSize{1, 1, 1}, {2, 0, 1}, kHalf);
  EXPECT_FALSE(judgement.accepted);
  EXPECT_THAT(judgement.remark, HasSubstr("accept_any_shrink")) << "the override is named";
}

TEST(ReloadPolicy, AnEmptyOneIsRefusedEvenWhereShrinkingIsNot) {
  EXPECT_FALSE(decide_reload(RuleSetSize{1, 5, 0}, {2, 0, 0}, {0.0, false}).accepted);
}

TEST(ReloadPolicy, AnEmptyOneIsTakenWhereTheLastWasEmptyToo) {
  EXPECT_TRUE(decide_reload(RuleSetSize{1, 0, 0}, {2, 0, 0}, kHalf).accepted);
}

TEST(ReloadPolicy, ShrinkingToTheShareIsTakenAndBelowItIsRefused) {
  EXPECT_TRUE(decide_reload(RuleSetSize{1, 10, 0}, {2, 5, 0}, kHalf).accepted);
  EXPECT_FALSE(decide_reload(RuleSetSize{1, 10, 0}, {2, 4, 0}, kHalf).accepted);
  EXPECT_FALSE(decide_reload(RuleSetSize{1, 10, 0}, {2, 9, 0}, {1.0, false}).accepted);
  EXPECT_TRUE(decide_reload(RuleSetSize{1, 10, 0}, {2, 1, 0}, {0.0, false}).accepted);
}

TEST(ReloadPolicy, GrowingIsTakenWithoutARemark) {
  const ReloadDecision judgement = decide_reload(RuleSetSize{1, 10, 10}, {2, 1000, 99}, kHalf);
  EXPECT_TRUE(judgement.accepted);
  EXPECT_EQ(judgement.remark, "");
}

TEST(ReloadPolicy, ALargeCatalogThatShrinksIsRefusedAndASmallOneIsNot) {
  EXPECT_FALSE(decide_reload(RuleSetSize{1, 2, 20}, {2, 2, 9}, kHalf).accepted);
  EXPECT_FALSE(decide_reload(RuleSetSize{1, 2, 20}, {2, 2, 0}, {0.0, false}).accepted);
  EXPECT_TRUE(decide_reload(RuleSetSize{1, 2, 20}, {2, 2, 10}, kHalf).accepted);
  EXPECT_TRUE(decide_reload(RuleSetSize{1, 2, 19}, {2, 2, 0}, kHalf).accepted);
}

TEST(ReloadPolicy, AShrinkThatWasAcceptedAtTheSourceIsTaken) {
  const RuleSetSize last{10, 8, 0};
  const auto judged = [&](std::uint64_t next, std::uint64_t accepted) {
    ReloadPolicy policy = kHalf;
    policy.accepted_version = accepted;
    return decide_reload(last, {next, 2, 0}, policy);
  };
  EXPECT_FALSE(judged(11, 0).accepted);
  EXPECT_TRUE(judged(12, 12).accepted);
  EXPECT_THAT(judged(12, 12).remark, HasSubstr("fcap_accept_rules"));
  EXPECT_TRUE(judged(13, 12).accepted)
      << "it was changed again since, and is the smaller set still";
  EXPECT_FALSE(judged(13, 10).accepted) << "what was accepted is in force; this is another shrink";
  EXPECT_FALSE(judged(13, 9).accepted);
  EXPECT_TRUE(judged(9, 9).accepted) << "a restored backup, accepted there";
  EXPECT_THAT(judged(11, 0).remark, HasSubstr("SELECT fcap_accept_rules()"));
}

TEST(ReloadPolicy, TheOverrideTakesAnythingAndSaysSo) {
  for (const RuleSetSize next : {RuleSetSize{2, 0, 0}, RuleSetSize{2, 1, 1}}) {
    const ReloadDecision judgement = decide_reload(RuleSetSize{1, 100, 100}, next, {0.5, true});
    EXPECT_TRUE(judgement.accepted);
    EXPECT_THAT(judgement.remark, HasSubstr("accept_any_shrink"));
  }
}

TEST(ReloadPolicy, AnOlderVersionIsTakenAndRemarkedOn) {
  const ReloadDecision judgement = decide_reload(RuleSetSize{9, 10, 10}, {7, 10, 10}, kHalf);
  EXPECT_TRUE(judgement.accepted);
  EXPECT_THAT(judgement.remark, HasSubstr("from 9 to 7"));
}

TEST(ReloadPolicy, AnOlderVersionThatIsEmptyIsRefused) {
  EXPECT_FALSE(decide_reload(RuleSetSize{9, 10, 10}, {7, 0, 0}, kHalf).accepted);
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
  EXPECT_TRUE(decide_segments(nullptr, *segments({}), kHalf).accepted);
}

TEST(SegmentPolicy, ASegmentWithMembersMustNotVanish) {
  const auto last = segments({{"optout", 1}, {"vip", 1000}});
  const ReloadDecision judgement = decide_segments(last.get(), *segments({{"vip", 1000}}), kHalf);
  EXPECT_FALSE(judgement.accepted);
  EXPECT_THAT(judgement.remark, HasSubstr("\"optout\" has vanished"));
  EXPECT_THAT(judgement.remark, HasSubstr("accept_any_shrink")) << "the override is named";
  EXPECT_FALSE(decide_segments(last.get(), *segments({}), kHalf).accepted);
}

TEST(SegmentPolicy, ASegmentIsRemovedOnPurposeByEmptyingItFirst) {
  const auto last = segments({{"optout", 1}, {"vip", 1000}});
  const auto emptied = segments({{"optout", 0}, {"vip", 1000}});
  EXPECT_TRUE(decide_segments(last.get(), *emptied, kHalf).accepted);
  EXPECT_TRUE(decide_segments(emptied.get(), *segments({{"vip", 1000}}), kHalf).accepted);
}

TEST(SegmentPolicy, AShrunkenSetIsRefusedFromTwentyMembersOn) {
  EXPECT_FALSE(decide_segments(segments({{"s", 20}}).get(), *segments({{"s", 9}}), kHalf).accepted);
  EXPECT_TRUE(decide_segments(segments({{"s", 20}}).get(), *segments({{"s", 10}}), kHalf).accepted);
  EXPECT_TRUE(decide_segments(segments({{"s", 19}}).get(), *segments({{"s", 0}}), kHalf).accepted);
  EXPECT_FALSE(
      decide_segments(segments({{"s", 20}}).get(), *segments({{"s", 0}}), {0.0, false}).accepted);
}

TEST(SegmentPolicy, TheOverrideTakesAnySetAndSaysSo) {
  const ReloadDecision judgement =
      decide_segments(segments({{"s", 100}}).get(), *segments({}), {0.5, true});
  EXPECT_TRUE(judgement.accepted);
  EXPECT_THAT(judgement.remark, HasSubstr("vanished"));
}

TEST(SegmentPolicy, AShrinkThatWasAcceptedAtTheSourceIsTaken) {
  ReloadPolicy policy = kHalf;
  const auto last = segments({{"s", 100}});
  EXPECT_FALSE(decide_segments(last.get(), *segments({}), policy).accepted);
  policy.accepted_version = segments({})->version();
  ASSERT_NE(policy.accepted_version, 0U);
  EXPECT_TRUE(decide_segments(last.get(), *segments({}), policy).accepted);
}

}  // namespace reload_policy_test
}  // namespace fcap::sources
