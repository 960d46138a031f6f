// Checks that need no history, and checks that cannot have it.
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures.h"

namespace fcap::checker_test {
namespace without_history_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Rule scoped_rule(Scope scope, std::string target, std::optional<std::uint32_t> limit = 5) {
  Rule rule = sliding_rule("r", std::move(target), limit);
  rule.scope = scope;
  return rule;
}

// Whether a check of one candidate, c1 with creative x, asks the store.
bool reads(std::vector<Rule> rules) {
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kNotFound;
  world.checker->set_rules(
      rule_set(std::move(rules), {{.id = "c1", .advertiser_id = "a1", .groups = {"g1", "g2"}},
                                  {.id = "c2", .advertiser_id = "a2", .groups = {"g3"}}}));
  const Candidate candidates[] = {{"c1", "x"}};
  EXPECT_EQ(world.checker->check("u", candidates).reason, Reason::kPassed);
  const std::size_t by_check = world.store->get_count;
  EXPECT_EQ(world.checker->first_allowed("u", candidates, 1).reason, Reason::kPassed);
  const CheckRequest users[] = {{"u", candidates}};
  (void)world.checker->check_batch(users);
  EXPECT_EQ(world.store->get_count, 3 * by_check);
  EXPECT_EQ(world.checker->stats().reads.unneeded, by_check == 0 ? 3U : 0U);
  return by_check > 0;
}

TEST(WithoutHistory, NothingIsReadWhereNoRuleCountsAnything) {
  EXPECT_FALSE(reads({}));
  EXPECT_FALSE(reads({scoped_rule(Scope::kCampaign, "c2")}));
  EXPECT_FALSE(reads({scoped_rule(Scope::kCreative, "y")}));
  EXPECT_FALSE(reads({scoped_rule(Scope::kAdvertiser, "a2")}));
  EXPECT_FALSE(reads({scoped_rule(Scope::kGroup, "g3")}));
  EXPECT_FALSE(reads({scoped_rule(Scope::kCampaign, "c1", std::nullopt)}));
  EXPECT_FALSE(reads({scoped_rule(Scope::kCampaign, "c1", 0)}));
}

TEST(WithoutHistory, WhateverCouldCountIsRead) {
  EXPECT_TRUE(reads({scoped_rule(Scope::kCampaign, "c1")}));
  EXPECT_TRUE(reads({scoped_rule(Scope::kCampaign, "*")}));
  EXPECT_TRUE(reads({scoped_rule(Scope::kCreative, "x")}));
  EXPECT_TRUE(reads({scoped_rule(Scope::kAdvertiser, "a1")}));
  EXPECT_TRUE(reads({scoped_rule(Scope::kAdvertiser, "*")}));
  EXPECT_TRUE(reads({scoped_rule(Scope::kGroup, "g2")}));
  EXPECT_TRUE(reads({scoped_rule(Scope::kUser, "")}));
  Rule shadow = scoped_rule(Scope::kCampaign, "c1");
  shadow.mode = Rule::Mode::kShadow;
  EXPECT_TRUE(reads({shadow}));
}

TEST(WithoutHistory, NoCandidatesAreAnsweredWithoutARead) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({scoped_rule(Scope::kUser, "")}));
  const CheckResult result = world.checker->check("u", {});
  EXPECT_EQ(result.reason, Reason::kPassed);
  EXPECT_THAT(result.verdicts, IsEmpty());
  EXPECT_EQ(world.store->get_count, 0U);
}

TEST(WithoutHistory, AHardRuleStillAsksForAReservation) {
  ScriptedChecker world;
  Rule hard = sliding_rule("h", "c1", 5);
  hard.enforcement = Rule::Enforcement::kHard;
  world.checker->set_rules(rule_set({hard, sliding_rule("s", "c2", 5)}));
  world.store->answer_at_once = StoreCode::kUnavailable;
  const Candidate candidates[] = {{"c1"}, {"c2"}};
  const CheckResult result = world.checker->check("u", candidates);
  EXPECT_EQ(result.reason, Reason::kUnavailable);
  EXPECT_TRUE(result.verdicts.at(0).allowed);
  EXPECT_TRUE(result.verdicts.at(0).needs_reserve);
  EXPECT_FALSE(result.verdicts.at(1).needs_reserve);
}

TEST(WithoutHistory, ALimitOfZeroIsDecided) {
  ScriptedChecker world;
  Rule opted_out = sliding_rule("opted out", "c1", 0);
  opted_out.segment = "optout";
  world.checker->set_rules(rule_set({opted_out}));
  const Candidate candidates[] = {{"c1"}, {"c2"}};
  const std::string_view segments[] = {"optout"};
  const CheckResult result =
      world.checker->check("u", candidates, {.deadline = {}, .now = {}, .segments = segments});
  EXPECT_EQ(result.reason, Reason::kPassed);
  EXPECT_EQ(result.verdicts[0].rule_id, "opted out");
  EXPECT_TRUE(result.verdicts[1].allowed);
  EXPECT_TRUE(world.checker->check("u", candidates).verdicts[0].allowed);
  EXPECT_EQ(world.store->get_count, 0U);
}

TEST(WithoutHistory, ACandidateWithoutACampaignIsInvalid) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r0", "c1", 0)}));
  const Candidate candidates[] = {{""}, {"c1"}, {"", "x"}};
  const CheckResult result = world.checker->check("u", candidates);
  EXPECT_EQ(result.verdicts[0].reason, Reason::kInvalid);
  EXPECT_EQ(result.verdicts[1].reason, Reason::kCapped);
  EXPECT_EQ(result.verdicts[2].reason, Reason::kInvalid);
  EXPECT_EQ(world.checker->stats().unjudged[Reason::kInvalid], 1U);
}

class Outage : public ::testing::TestWithParam<StoreCode> {};

TEST_P(Outage, WhatThisProcessHasShownCountsWhereItIsCertain) {
  ScriptedChecker world;
  Rule fixed = sliding_rule("fixed", "c2", 1);
  fixed.window.kind = Window::Kind::kFixed;
  world.checker->set_rules(
      rule_set({sliding_rule("r3", "c1", 3), fixed, sliding_rule("never", "c3", 0)}));
  for (const char* event : {"e1", "e2", "e3"}) {
    ASSERT_TRUE(world.checker->note_shown({"u", {"c1"}, event, kNow - 1min}));
  }
  ASSERT_TRUE(world.checker->note_shown({"u", {"c2"}, "e4", kNow - 1min}));
  world.store->answer_at_once = GetParam();
  // Where a fixed window begins is known from the history alone.
  const Candidate candidates[] = {{"c1"}, {"c2"}, {"c3"}, {"c4"}};
  const CheckResult result = world.checker->check("u", candidates);
  EXPECT_NE(result.reason, Reason::kPassed);
  EXPECT_EQ(result.verdicts[0].reason, Reason::kCapped);
  EXPECT_FALSE(result.verdicts[0].allowed);
  EXPECT_EQ(result.verdicts[0].rule_id, "r3");
  EXPECT_EQ(result.verdicts[0].count, 3U);
  EXPECT_EQ(result.verdicts[0].limit, 3U);
  EXPECT_FALSE(result.verdicts[0].complete);
  EXPECT_EQ(result.verdicts[0].eligible_at, kNow - 1min + 24h);
  EXPECT_EQ(result.verdicts[1].reason, result.reason);
  EXPECT_TRUE(result.verdicts[1].allowed);
  EXPECT_EQ(result.verdicts[2].rule_id, "never");
  EXPECT_TRUE(result.verdicts[3].allowed);
  EXPECT_THAT(world.checker->first_allowed("u", candidates, 4).picked, ElementsAre(1, 3));
  EXPECT_EQ(world.checker->stats().certain_verdicts, 4U);

  EXPECT_TRUE(world.checker->check("somebody else", candidates).verdicts[0].allowed);
}

TEST_P(Outage, WhatIsTakenBackNoLongerCounts) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  ASSERT_TRUE(world.checker->note_shown({"u", {"c1"}, "e1", kNow}));
  world.store->answer_at_once = GetParam();
  const Candidate candidates[] = {{"c1"}};
  EXPECT_FALSE(world.checker->check("u", candidates).verdicts[0].allowed);
  EXPECT_FALSE(world.checker->take_back_shown({"u", {"c1"}, "e2"}));
  EXPECT_FALSE(world.checker->take_back_shown({"u", {"c2"}, "e1"}));
  EXPECT_TRUE(world.checker->take_back_shown({"u", {"c1"}, "e1"}));
  EXPECT_FALSE(world.checker->take_back_shown({"u", {"c1"}, "e1"}));
  EXPECT_TRUE(world.checker->check("u", candidates).verdicts[0].allowed);
  EXPECT_EQ(world.checker->stats().shown.taken_back, 1U);
}

INSTANTIATE_TEST_SUITE_P(EachCode, Outage,
                         ::testing::Values(StoreCode::kTimeout, StoreCode::kUnavailable,
                                           StoreCode::kBreakerOpen, StoreCode::kOverloaded));

}  // namespace without_history_test
}  // namespace fcap::checker_test
