#include <gtest/gtest.h>

#include "tests/unit/rules/rules_fixture.h"

namespace fcap::rules {
namespace sliding_window_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

TEST(SlidingWindow, EventJustUnderOneWindowOldStillCounts) {
  Scene scene;
  scene.rule({.id = "r", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.event("c1", 0);
  EXPECT_FALSE(scene.check("c1", 3'599'999).allowed);
}

TEST(SlidingWindow, EventExactlyOneWindowOldNoLongerCounts) {
  Scene scene;
  scene.rule({.id = "r", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.event("c1", 0);
  EXPECT_TRUE(scene.check("c1", 3'600'000).allowed);
}

TEST(SlidingWindow, LimitAdmitsExactlyThatMany) {
  Scene scene;
  scene.rule({.id = "r", .target = "c1", .limit = 3, .window = sliding(1h)});
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(scene.check("c1", 1000 + i).allowed) << i;
    scene.event("c1", 1000 + i);
  }
  const Verdict verdict = scene.check("c1", 2000);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.reason, Reason::kCapped);
  EXPECT_EQ(verdict.rule_id, "r");
  EXPECT_EQ(verdict.count, 3U);
  EXPECT_EQ(verdict.limit, 3U);
  EXPECT_EQ(eligible_ms(verdict), 1000 + 3'600'000);
}

TEST(SlidingWindow, EligibleAtWaitsUntilTheCountIsBelowTheLimit) {
  Scene scene;
  scene.rule({.id = "r", .target = "c1", .limit = 2, .window = sliding(1h)});
  for (const int at : {100, 200, 300, 400}) scene.event("c1", at);
  const Verdict verdict = scene.check("c1", 500);
  EXPECT_EQ(verdict.count, 4U);
  EXPECT_EQ(eligible_ms(verdict), 300 + 3'600'000);
  EXPECT_FALSE(scene.check("c1", 300 + 3'600'000 - 1).allowed);
  EXPECT_TRUE(scene.check("c1", 300 + 3'600'000).allowed);
}

TEST(SlidingWindow, FutureEventsCountFromArrivalUntilTheyAreOneWindowOld) {
  Scene scene;
  scene.rule({.id = "r", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.event("c1", 300'000);
  const Verdict verdict = scene.check("c1", 0);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(eligible_ms(verdict), 300'000 + 3'600'000);
}

TEST(Scopes, AdvertiserCountsAllOfItsCampaignsAndNoOthers) {
  Scene scene;
  scene.campaign({.id = "c1", .advertiser_id = "a1"});
  scene.campaign({.id = "c2", .advertiser_id = "a1", .deleted = true});
  scene.campaign({.id = "c3", .advertiser_id = "a2"});
  scene.rule({.id = "adv",
              .scope = Scope::kAdvertiser,
              .target = "a1",
              .limit = 2,
              .window = sliding(24h)});
  scene.event("c1", 1000);
  scene.event("c3", 1001);
  EXPECT_TRUE(scene.check("c1", 2000).allowed);
  scene.event("c2", 1002);
  EXPECT_FALSE(scene.check("c1", 2000).allowed);
  EXPECT_TRUE(scene.check("c3", 2000).allowed);
  EXPECT_TRUE(scene.check("unknown", 2000).allowed);
  EXPECT_EQ(eligible_ms(scene.check("c1", 2000)), 1000 + 86'400'000);
}

TEST(Scopes, GroupCountsItsCampaignsWhicheverIsAsked) {
  Scene scene;
  scene.campaign({.id = "c1", .groups = {"g1", "g2"}});
  scene.campaign({.id = "c2", .groups = {"g1"}});
  scene.rule(
      {.id = "g", .scope = Scope::kGroup, .target = "g1", .limit = 2, .window = sliding(1h)});
  scene.event("c1", 1000);
  scene.event("c2", 1001);
  EXPECT_FALSE(scene.check("c1", 2000).allowed);
  EXPECT_FALSE(scene.check("c2", 2000).allowed);
}

TEST(Scopes, UserCountsEverythingOfTheRulesType) {
  Scene scene;
  scene.rule({.id = "u", .scope = Scope::kUser, .limit = 2, .window = sliding(1h)});
  scene.event("c1", 1000);
  scene.event("unknown", 1001, "", EventType::kClick);
  EXPECT_TRUE(scene.check("c9", 2000).allowed);
  scene.event("unknown", 1002);
  const Verdict verdict = scene.check("c9", 2000);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.rule_id, "u");
  EXPECT_EQ(verdict.count, 2U);
}

TEST(Scopes, CreativeCountsAcrossCampaignsAndOnlyForCandidatesThatHaveIt) {
  Scene scene;
  scene.rule(
      {.id = "cr", .scope = Scope::kCreative, .target = "k1", .limit = 2, .window = sliding(1h)});
  scene.event("c1", 1000, "k1");
  scene.event("c2", 1001, "k1");
  scene.event("c1", 1002, "k2");
  EXPECT_FALSE(scene.check(Candidate{"c3", "k1"}, 2000).allowed);
  EXPECT_TRUE(scene.check(Candidate{"c1", "k2"}, 2000).allowed);
  EXPECT_TRUE(scene.check("c1", 2000).allowed);
}

TEST(Verdicts, TheRuleNamedIsTheOneThatClearsLastTiesBySmallestId) {
  Scene scene;
  scene.rule({.id = "short", .target = "c1", .limit = 1, .window = sliding(1h)});
  scene.rule({.id = "long-b", .target = "c1", .limit = 1, .window = sliding(2h)});
  scene.rule({.id = "long-a", .scope = Scope::kUser, .limit = 1, .window = sliding(2h)});
  scene.event("c1", 0);
  EXPECT_EQ(scene.check("c1", 1).rule_id, "long-a");
  EXPECT_EQ(eligible_ms(scene.check("c1", 1)), 7'200'000);
}

TEST(Verdicts, LimitZeroNeverPassesAndHasNoEligibleAt) {
  Scene scene;
  scene.rule({.id = "zero", .target = "c1", .limit = 0, .window = sliding(1h)});
  const Verdict verdict = scene.check("c1", 1);
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(verdict.count, 0U);
  EXPECT_FALSE(verdict.eligible_at.has_value());
}

TEST(Verdicts, LimitNullNeverCaps) {
  Scene scene;
  scene.rule({.id = "null", .target = "c1", .limit = std::nullopt, .window = sliding(1h)});
  for (int i = 0; i < 100; ++i) scene.event("c1", i);
  const Verdict verdict = scene.check("c1", 200);
  EXPECT_TRUE(verdict.allowed);
  EXPECT_EQ(eligible_ms(verdict), 200);
}

TEST(Verdicts, ShadowRulesAreCountedAndNeverCap) {
  Scene scene;
  scene.rule({.id = "shadow",
              .target = "c1",
              .limit = 0,
              .window = sliding(1h),
              .mode = Rule::Mode::kShadow});
  EXPECT_TRUE(scene.check("c1", 1).allowed);
  EXPECT_EQ(scene.shadow_capped(), 1U);
  EXPECT_TRUE(scene.check("c2", 1).allowed);
  EXPECT_EQ(scene.shadow_capped(), 0U);
}

}  // namespace sliding_window_test
}  // namespace fcap::rules
