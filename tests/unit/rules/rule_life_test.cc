#include <gtest/gtest.h>

#include "tests/unit/rules/rules_fixture.h"

// Segments, defaults, starts and ends, fixed windows and incomplete records, one decision a test.
namespace fcap::rules {
namespace rule_life_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

constexpr std::int64_t kHourMs = 3'600'000;

TEST(RuleLife, IsInForceFromStartToJustBeforeEnd) {
  Scene scene;
  scene.rule({.id = "r",
              .target = "c1",
              .limit = 0,
              .window = sliding(1h),
              .start = instant_from_ms(1000),
              .end = instant_from_ms(2000)});
  EXPECT_TRUE(scene.check("c1", 999).allowed);
  EXPECT_FALSE(scene.check("c1", 1000).allowed);
  EXPECT_FALSE(scene.check("c1", 1999).allowed);
  EXPECT_EQ(eligible_ms(scene.check("c1", 1000)), 2000);
  EXPECT_TRUE(scene.check("c1", 2000).allowed);
}

TEST(RuleLife, EventsBeforeTheStartCount) {
  Scene scene;
  scene.rule({.id = "r",
              .target = "c1",
              .limit = 1,
              .window = sliding(1h),
              .start = instant_from_ms(1000)});
  scene.event("c1", 500);
  EXPECT_FALSE(scene.check("c1", 1000).allowed);
}

TEST(RuleLife, EligibleAtForeseesARuleThatStartsBeforeTheFirstOneClears) {
  Scene scene;
  scene.rule({.id = "now", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "soon",
              .target = "c1",
              .limit = 0,
              .window = sliding(1h),
              .start = instant_from_ms(kHourMs / 2),
              .end = instant_from_ms(3 * kHourMs)});
  scene.event("c1", 0);
  const Verdict verdict = scene.check("c1", 1);
  EXPECT_EQ(verdict.rule_id, "now");
  EXPECT_EQ(eligible_ms(verdict), 3 * kHourMs);
  const CandidateExplanation explanation = scene.explain(Candidate{"c1"}, 1);
  ASSERT_EQ(explanation.applicable.size(), 1U);
  EXPECT_EQ(to_ms(*explanation.applicable[0].eligible_at), kHourMs);
}

TEST(RuleLife, EligibleAtSkipsARuleThatOnlyStartsAfterwards) {
  Scene scene;
  scene.rule({.id = "now", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "later",
              .target = "c1",
              .limit = 0,
              .window = sliding(1h),
              .start = instant_from_ms(kHourMs + 1)});
  scene.event("c1", 0);
  EXPECT_EQ(eligible_ms(scene.check("c1", 1)), kHourMs);
  EXPECT_TRUE(scene.check("c1", kHourMs).allowed);
  EXPECT_FALSE(scene.check("c1", kHourMs + 1).allowed);
}

TEST(Segments, MembersRuleReplacesTheGeneralOneOfTheSameKeyOnly) {
  Scene scene;
  scene.rule({.id = "general", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "vip", .target = "c1", .limit = 3, .window = sliding(1h), .segment = "vip"});
  scene.rule({.id = "other-window", .target = "c1", .limit = 2, .window = sliding(2h)});
  scene.event("c1", 10);
  EXPECT_EQ(scene.check("c1", 20).rule_id, "general");
  scene.segments({"vip", "never-heard-of"});
  EXPECT_TRUE(scene.check("c1", 20).allowed);
  scene.event("c1", 11);
  EXPECT_EQ(scene.check("c1", 20).rule_id, "other-window");
  const CandidateExplanation explanation = scene.explain(Candidate{"c1"}, 20);
  ASSERT_EQ(explanation.replaced.size(), 1U);
  EXPECT_EQ(explanation.replaced[0].rule->id, "general");
  EXPECT_EQ(explanation.replaced[0].replaced_by, "vip");
  EXPECT_EQ(explanation.replaced[0].count, 2U);
  EXPECT_FALSE(explanation.replaced[0].stands_in_way);
}

TEST(Segments, SmallestLimitOfSeveralWinsAndNullRanksLast) {
  Scene scene;
  scene.rule({.id = "a", .target = "c1", .limit = 5, .window = sliding(1h), .segment = "s1"});
  scene.rule({.id = "b", .target = "c1", .limit = 2, .window = sliding(1h), .segment = "s2"});
  scene.rule(
      {.id = "c", .target = "c1", .limit = std::nullopt, .window = sliding(1h), .segment = "s3"});
  for (int i = 0; i < 5; ++i) scene.event("c1", i);
  scene.segments({"s1", "s2", "s3"});
  EXPECT_EQ(scene.check("c1", 10).rule_id, "b");
  scene.segments({"s1", "s3"});
  EXPECT_EQ(scene.check("c1", 10).rule_id, "a");
  scene.segments({"s3"});
  EXPECT_TRUE(scene.check("c1", 10).allowed);
}

TEST(Segments, ASegmentRuleThatStartsClearsTheGeneralOne) {
  Scene scene;
  scene.rule({.id = "general", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "vip",
              .target = "c1",
              .limit = std::nullopt,
              .window = sliding(1h),
              .segment = "vip",
              .start = instant_from_ms(5000)});
  scene.event("c1", 0);
  EXPECT_EQ(eligible_ms(scene.check("c1", 1)), kHourMs);
  scene.segments({"vip"});
  EXPECT_EQ(eligible_ms(scene.check("c1", 1)), 5000);
  EXPECT_TRUE(scene.check("c1", 5000).allowed);
}

TEST(Segments, ShadowAndEnforcedRulesDoNotReplaceEachOther) {
  Scene scene;
  scene.rule({.id = "general", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "shadow",
              .target = "c1",
              .limit = 9,
              .window = sliding(1h),
              .segment = "vip",
              .mode = Rule::Mode::kShadow});
  scene.event("c1", 0);
  scene.segments({"vip"});
  EXPECT_EQ(scene.check("c1", 1).rule_id, "general");
}

TEST(Defaults, CapEachIdOfTheirScopeByItselfKnownToTheCatalogOrNot) {
  Scene scene;
  scene.campaign({.id = "c1"});
  scene.rule({.id = "default", .target = "*", .limit = 1, .window = sliding(1h)});
  scene.event("c1", 0);
  scene.event("unknown", 0);
  EXPECT_FALSE(scene.check("c1", 1).allowed);
  EXPECT_FALSE(scene.check("unknown", 1).allowed);
  EXPECT_TRUE(scene.check("c3", 1).allowed);
}

TEST(Defaults, ARuleOfItsOwnPutsTheDefaultOfItsTypeAsideWhateverItsWindow) {
  Scene scene;
  scene.rule({.id = "default", .target = "*", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "default-click",
              .target = "*",
              .event_type = EventType::kClick,
              .limit = 1,
              .window = sliding(1h)});
  scene.rule({.id = "own", .target = "c1", .limit = 5, .window = sliding(24h)});
  scene.event("c1", 0);
  EXPECT_TRUE(scene.check("c1", 1).allowed);
  scene.event("c1", 0, "", EventType::kClick);
  EXPECT_EQ(scene.check("c1", 1).rule_id, "default-click");
  const CandidateExplanation explanation = scene.explain(Candidate{"c1"}, 1);
  ASSERT_EQ(explanation.replaced.size(), 1U);
  EXPECT_EQ(explanation.replaced[0].rule->id, "default");
  EXPECT_EQ(explanation.replaced[0].replaced_by, "own");
}

TEST(Defaults, ARuleWithoutLimitExemptsItsTarget) {
  Scene scene;
  scene.rule({.id = "default", .target = "*", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "free", .target = "c1", .limit = std::nullopt, .window = sliding(1h)});
  scene.event("c1", 0);
  scene.event("c2", 0);
  EXPECT_TRUE(scene.check("c1", 1).allowed);
  EXPECT_FALSE(scene.check("c2", 1).allowed);
}

TEST(Defaults, AShadowRuleDoesNotPutAnEnforcedDefaultAside) {
  Scene scene;
  scene.rule({.id = "default", .target = "*", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "shadow",
              .target = "c1",
              .limit = 9,
              .window = sliding(1h),
              .mode = Rule::Mode::kShadow});
  scene.event("c1", 0);
  EXPECT_FALSE(scene.check("c1", 1).allowed);
}

TEST(Defaults, AnExemptionForOthersOrForAnotherTimeDoesNotCount) {
  Scene scene;
  scene.rule({.id = "default", .target = "*", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "vip",
              .target = "c1",
              .limit = std::nullopt,
              .window = sliding(1h),
              .segment = "vip",
              .start = instant_from_ms(1000),
              .end = instant_from_ms(2000)});
  scene.event("c1", 0);
  EXPECT_FALSE(scene.check("c1", 1500).allowed);
  scene.segments({"vip"});
  EXPECT_TRUE(scene.check("c1", 1500).allowed);
  EXPECT_FALSE(scene.check("c1", 2000).allowed);
  EXPECT_EQ(eligible_ms(scene.check("c1", 500)), 1000);
}

TEST(Defaults, OneDefaultOverSeveralGroupsNamesTheLargestCount) {
  Scene scene;
  scene.campaign({.id = "c1", .groups = {"g1", "g2"}});
  scene.campaign({.id = "c2", .groups = {"g2"}});
  scene.rule(
      {.id = "default", .scope = Scope::kGroup, .target = "*", .limit = 1, .window = sliding(1h)});
  scene.event("c1", 0);
  scene.event("c2", 0);
  EXPECT_EQ(scene.check("c1", 1).count, 2U);
  const CandidateExplanation explanation = scene.explain(Candidate{"c1"}, 1);
  ASSERT_EQ(explanation.applicable.size(), 2U);
  EXPECT_EQ(explanation.applicable[0].target, "g1");
  EXPECT_EQ(explanation.applicable[1].target, "g2");
}

TEST(FixedWindow, OpensAtTheFirstEventAndClosesOneLengthLater) {
  Scene scene;
  scene.rule({.id = "f", .target = "c1", .limit = 2, .window = fixed(8h)});
  scene.event("c1", 0);
  scene.event("c1", 7 * kHourMs);
  const Verdict verdict = scene.check("c1", 7 * kHourMs + 1);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(eligible_ms(verdict), 8 * kHourMs);
  EXPECT_FALSE(scene.check("c1", 8 * kHourMs - 1).allowed);
  EXPECT_TRUE(scene.check("c1", 8 * kHourMs).allowed);
}

TEST(FixedWindow, TheNextEventAfterTheCloseOpensANewOne) {
  Scene scene;
  scene.rule({.id = "f", .target = "c1", .limit = 2, .window = fixed(8h)});
  for (const std::int64_t hour : {0, 7, 8, 9}) scene.event("c1", hour * kHourMs);
  const CandidateExplanation explanation = scene.explain(Candidate{"c1"}, 10 * kHourMs);
  ASSERT_EQ(explanation.applicable.size(), 1U);
  EXPECT_EQ(explanation.applicable[0].count, 2U);
  EXPECT_EQ(to_ms(explanation.applicable[0].counted_from), 8 * kHourMs);
  EXPECT_EQ(to_ms(*explanation.applicable[0].counted_until), 16 * kHourMs);
}

TEST(FixedWindow, EligibleAtFollowsAChainThatChangesAsItsFirstEntryLeavesTheRetention) {
  // With a retention of 30 h the chain 0, 14, 16, 29 h opens at 0 and 16; without its first entry
  // at 14 and 29. A count can rise again without any event.
  Scene scene(30h);
  scene.rule({.id = "f", .target = "c1", .limit = 1, .window = fixed(15h)});
  scene.rule({.id = "g",
              .target = "c1",
              .limit = 0,
              .window = sliding(1h),
              .end = instant_from_ms(32 * kHourMs)});
  for (const std::int64_t hour : {0, 14, 16, 29}) scene.event("c1", hour * kHourMs);
  const auto count_at = [&](std::int64_t at_ms) {
    for (const RuleAccount& account : scene.explain(Candidate{"c1"}, at_ms).applicable) {
      if (account.rule->id == "f") return account.count;
    }
    return 99U;
  };
  EXPECT_EQ(count_at(30 * kHourMs - 1), 2U);
  EXPECT_EQ(count_at(30 * kHourMs), 1U);
  EXPECT_EQ(eligible_ms(scene.check("c1", 30 * kHourMs - 1)), 44 * kHourMs);
}

TEST(EveryWindow, CountsOnlyWhatIsWithinTheRetention) {
  Scene scene(24h);
  scene.rule({.id = "life", .target = "c1", .limit = 1, .window = lifetime()});
  scene.event("c1", 0);
  EXPECT_FALSE(scene.check("c1", 24 * kHourMs - 1).allowed);
  EXPECT_EQ(eligible_ms(scene.check("c1", 1)), 24 * kHourMs);
  EXPECT_TRUE(scene.check("c1", 24 * kHourMs).allowed);
}

TEST(Verdict, SaysSinceWhenTheNamedRuleCounts) {
  const std::int64_t now_ms = 40 * 86'400'000LL + 12 * kHourMs;
  const auto since = [&](Window window) {
    Scene scene;
    scene.rule({.id = "r", .target = "c1", .limit = 1, .window = std::move(window)});
    scene.event("c1", now_ms - kHourMs / 2);
    const Verdict verdict = scene.check("c1", now_ms);
    return verdict.counted_since ? to_ms(*verdict.counted_since) : -1;
  };
  EXPECT_EQ(since(sliding(1h)), now_ms - kHourMs + 1);
  EXPECT_EQ(since(lifetime()), now_ms - 32 * 86'400'000LL + 1);
  EXPECT_EQ(since(fixed(8h)), now_ms - kHourMs / 2);
  EXPECT_EQ(since(calendar(CalendarUnit::kDay)), 40 * 86'400'000LL);
}

TEST(Explain, GivesTheBoundsOfEachWindow) {
  Scene scene;
  scene.rule({.id = "a-sliding", .target = "c1", .limit = 9, .window = sliding(1h)});
  scene.rule({.id = "b-day", .target = "c1", .limit = 9, .window = calendar(CalendarUnit::kDay)});
  scene.rule({.id = "c-fixed", .target = "c1", .limit = 9, .window = fixed(1h)});
  scene.rule({.id = "d-life", .target = "c1", .limit = std::nullopt, .window = lifetime()});
  const std::int64_t now_ms = 40 * 86'400'000LL + 12 * kHourMs;
  const auto accounts = scene.explain(Candidate{"c1"}, now_ms).applicable;
  ASSERT_EQ(accounts.size(), 4U);
  EXPECT_EQ(to_ms(accounts[0].counted_from), now_ms - kHourMs + 1);
  EXPECT_FALSE(accounts[0].counted_until.has_value());
  EXPECT_EQ(to_ms(accounts[1].counted_from), 40 * 86'400'000LL);
  EXPECT_EQ(to_ms(*accounts[1].counted_until), 41 * 86'400'000LL);
  EXPECT_EQ(to_ms(accounts[2].counted_from), now_ms);
  EXPECT_FALSE(accounts[2].counted_until.has_value());
  EXPECT_EQ(to_ms(accounts[3].counted_from), now_ms - 32 * 86'400'000LL + 1);
  for (const RuleAccount& account : accounts) EXPECT_EQ(to_ms(*account.eligible_at), now_ms);
}

}  // namespace rule_life_test
}  // namespace fcap::rules
