#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures.h"
#include "host_store.h"

namespace fcap::checker_test {
namespace check_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Check, LimitNAdmitsExactlyN) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r3", "c1", 3)}));
  world.store->answer_at_once = StoreCode::kOk;
  const Candidate candidates[] = {{"c1"}, {"c2"}};

  world.store->records["fcap:{u}"] = record_of("c1", 2);
  CheckResult result = world.checker->check("u", candidates);
  EXPECT_EQ(result.reason, Reason::kPassed);
  EXPECT_TRUE(result.verdicts[0].allowed);

  world.store->records["fcap:{u}"] = record_of("c1", 3);
  result = world.checker->check("u", candidates);
  EXPECT_FALSE(result.verdicts[0].allowed);
  EXPECT_EQ(result.verdicts[0].reason, Reason::kCapped);
  EXPECT_EQ(result.verdicts[0].rule_id, "r3");
  EXPECT_EQ(result.verdicts[0].count, 3U);
  EXPECT_EQ(result.verdicts[0].limit, 3U);
  EXPECT_EQ(result.verdicts[0].eligible_at, kNow - 3min + 24h);
  EXPECT_TRUE(result.verdicts[1].allowed);
}

TEST(Check, MissingRecordIsAnEmptyHistory) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  world.store->answer_at_once = StoreCode::kNotFound;
  const Candidate candidates[] = {{"c1"}};
  const CheckResult result = world.checker->check("u", candidates);
  EXPECT_EQ(result.reason, Reason::kPassed);
  EXPECT_TRUE(result.verdicts[0].allowed);
}

TEST(Check, WithoutRulesAnswersNoRulesAndReadsNothing) {
  ScriptedChecker world;
  const Candidate candidates[] = {{"c1"}};
  const CheckResult result = world.checker->check("u", candidates);
  EXPECT_EQ(result.reason, Reason::kNoRules);
  EXPECT_TRUE(result.verdicts[0].allowed);
  EXPECT_EQ(world.store->get_count, 0U);
  EXPECT_EQ(world.checker->stats().unjudged[Reason::kNoRules], 1U);
}

TEST(Check, AsksAStoreOfAHostThatHasNoTypeInformation) {
  CheckerOptions options = patient_options();
  options.store = store_without_rtti();
  auto made = Checker::create(std::move(options));
  ASSERT_TRUE(made.ok()) << made.status().text();
  made.value()->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  const Candidate candidates[] = {{"c1"}};
  EXPECT_EQ(made.value()->check("u", candidates, kPatient).reason, Reason::kPassed);
}

TEST(Check, NullUserIdsAreNeverRead) {
  CheckerOptions options = patient_options();
  options.null_user_ids = {"0", "unknown"};
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("r0", "c1", 0)}));
  const Candidate candidates[] = {{"c1"}};
  for (const char* user : {"", "0", "unknown"}) {
    const CheckResult result = world.checker->check(user, candidates);
    EXPECT_EQ(result.reason, Reason::kNoUser) << user;
    EXPECT_TRUE(result.verdicts[0].allowed) << user;
  }
  EXPECT_EQ(world.store->get_count, 0U);
  EXPECT_EQ(world.checker->stats().unjudged[Reason::kNoUser], 3U);
}

TEST(Check, NoUserPolicyCapCaps) {
  CheckerOptions options = patient_options();
  options.no_user = CheckerOptions::NoUserPolicy::kCap;
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  const Candidate candidates[] = {{"c1"}};
  const CheckResult result = world.checker->check("", candidates);
  EXPECT_FALSE(result.verdicts[0].allowed);
  EXPECT_EQ(result.verdicts[0].reason, Reason::kNoUser);
}

TEST(Check, UserIdOver256BytesIsInvalid) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r0", "c1", 0)}));
  world.store->answer_at_once = StoreCode::kNotFound;
  const Candidate candidates[] = {{"c1"}};
  EXPECT_EQ(world.checker->check(std::string(257, 'u'), candidates).reason, Reason::kInvalid);
  EXPECT_EQ(world.store->get_count, 0U);
  EXPECT_EQ(world.checker->check(std::string(256, 'u'), candidates).reason, Reason::kPassed);
}

TEST(Check, CandidateIdOver256BytesIsInvalidAndTheOthersAreJudged) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r0", "c1", 0)}));
  world.store->answer_at_once = StoreCode::kNotFound;
  const std::string oversized(257, 'c');
  const Candidate candidates[] = {{oversized}, {"c1"}, {"c2", oversized}};
  const CheckResult result = world.checker->check("u", candidates);
  EXPECT_EQ(result.reason, Reason::kPassed);
  EXPECT_EQ(result.verdicts[0].reason, Reason::kInvalid);
  EXPECT_TRUE(result.verdicts[0].allowed);
  EXPECT_EQ(result.verdicts[1].reason, Reason::kCapped);
  EXPECT_EQ(result.verdicts[2].reason, Reason::kInvalid);
  EXPECT_EQ(world.checker->stats().unjudged[Reason::kInvalid], 1U);
}

struct CodeAndReason {
  StoreCode code;
  Reason reason;
};

class StoreFailure : public ::testing::TestWithParam<CodeAndReason> {};

TEST_P(StoreFailure, FailsOpenWithItsReason) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  world.store->answer_at_once = GetParam().code;
  const Candidate candidates[] = {{"c1"}, {"c2"}};
  const CheckResult result = world.checker->check("u", candidates);
  EXPECT_EQ(result.reason, GetParam().reason);
  for (const Verdict& verdict : result.verdicts) {
    EXPECT_TRUE(verdict.allowed);
    EXPECT_EQ(verdict.reason, GetParam().reason);
  }
  EXPECT_THAT(world.checker->first_allowed("u", candidates, 1).picked, ElementsAre(0));
}

TEST_P(StoreFailure, CapsWithItsReasonWhereFailOpenIsOff) {
  CheckerOptions options = patient_options();
  options.fail_open = false;
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  world.store->answer_at_once = GetParam().code;
  const Candidate candidates[] = {{"c1"}};
  const CheckResult result = world.checker->check("u", candidates);
  EXPECT_FALSE(result.verdicts[0].allowed);
  EXPECT_EQ(result.verdicts[0].reason, GetParam().reason);
  EXPECT_THAT(world.checker->first_allowed("u", candidates, 1).picked, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    EachCode, StoreFailure,
    ::testing::Values(CodeAndReason{StoreCode::kTimeout, Reason::kTimeout},
                      CodeAndReason{StoreCode::kUnavailable, Reason::kUnavailable},
                      CodeAndReason{StoreCode::kServerError, Reason::kUnavailable},
                      CodeAndReason{StoreCode::kBreakerOpen, Reason::kBreakerOpen},
                      CodeAndReason{StoreCode::kOverloaded, Reason::kOverloaded}),
    [](const auto& instance) {
      return std::string(to_string(instance.param.reason)) +
             std::to_string(static_cast<int>(instance.param.code));
    });

TEST(Check, UndecodableRecordFailsOpenAndIsCounted) {
  std::vector<std::string> lines;
  CheckerOptions options = patient_options();
  options.log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  world.store->answer_at_once = StoreCode::kOk;
  world.store->records["fcap:{u}"] = record_of("c1", 2).substr(0, 5);
  const Candidate candidates[] = {{"c1"}};
  for (int i = 0; i < 3; ++i) {
    const CheckResult result = world.checker->check("u", candidates);
    EXPECT_EQ(result.reason, Reason::kUndecodable);
    EXPECT_TRUE(result.verdicts[0].allowed);
  }
  EXPECT_EQ(world.checker->stats().unjudged[Reason::kUndecodable], 3U);
  EXPECT_EQ(lines.size(), 2U);  // at the first and the second, not at each
}

TEST(Check, NewRulesApplyAtOnceAndOldVerdictsStayReadable) {
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kOk;
  world.store->records["fcap:{u}"] = record_of("c1", 2);
  const Candidate candidates[] = {{"c1"}};
  world.checker->set_rules(rule_set({sliding_rule("a rule with a long name", "c1", 2)}, {}, 7));
  const CheckResult first = world.checker->check("u", candidates);
  EXPECT_FALSE(first.verdicts[0].allowed);

  world.checker->set_rules(rule_set({sliding_rule("other", "c1", 3)}, {}, 8));
  EXPECT_TRUE(world.checker->check("u", candidates).verdicts[0].allowed);
  EXPECT_EQ(first.verdicts[0].rule_id, "a rule with a long name");
  EXPECT_EQ(first.rules->version(), 7U);
  EXPECT_EQ(world.checker->rules()->version(), 8U);
  EXPECT_EQ(world.checker->stats().rules.version, 8U);
  EXPECT_EQ(world.checker->stats().rules.reloads, 2U);
}

TEST(Check, ReplacedRuleSetIsLetGo) {
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kNotFound;
  const Candidate candidates[] = {{"c1"}};
  std::shared_ptr<const RuleSet> rules = rule_set({sliding_rule("r1", "c1", 1)});
  const std::weak_ptr<const RuleSet> watch = rules;
  world.checker->set_rules(std::move(rules));
  static_cast<void>(world.checker->check("u", candidates));
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  expect_let_go(watch);
}

TEST(Check, ClaimsNoCompletenessWhileEventsAreMissing) {
  ScriptedChecker world;
  world.checker->set_rules(
      rule_set({sliding_rule("day", "c1", 2), sliding_rule("hour", "c2", 2, 1h),
                sliding_rule("0", "c3", 0)}));
  world.store->records["fcap:{u}"] = record_of("c1", 1);
  world.store->answer_at_once = StoreCode::kOk;
  const Candidate candidates[] = {{"c1"}, {"c2"}, {"c3"}};
  const auto complete = [&] {
    std::vector<bool> all;
    for (const Verdict& verdict : world.checker->check("u", candidates).verdicts) {
      all.push_back(verdict.complete);
    }
    return all;
  };
  EXPECT_EQ(complete(), (std::vector<bool>{true, true, true}));
  world.store->missing = kNow - 2h;
  EXPECT_EQ(complete(), (std::vector<bool>{false, true, true}));
  world.store->missing = kNow - 30min;
  EXPECT_EQ(complete(), (std::vector<bool>{false, false, true}));
  world.store->missing.reset();
  EXPECT_EQ(complete(), (std::vector<bool>{true, true, true}));
}

TEST(Check, ClaimsCompletenessForUsersWhoLackNothingWhileOthersDo) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("day", "c1", 2)}));
  world.store->answer_at_once = StoreCode::kOk;
  world.store->missing = kNow - 2h;
  const Candidate candidates[] = {{"c1"}};
  // The longest id; the other one's braces are a part of its key.
  for (const std::string& user : {std::string(256, 'u'), std::string("}{v")}) {
    world.store->only_missing_in = "fcap:{" + user + "}";
    EXPECT_FALSE(world.checker->check(user, candidates).verdicts.at(0).complete);
    EXPECT_TRUE(world.checker->check("w", candidates).verdicts.at(0).complete);
    const CheckRequest users[] = {{"w", candidates}, {user, candidates}};
    const std::vector<CheckResult> results = world.checker->check_batch(users);
    EXPECT_TRUE(results.at(0).verdicts.at(0).complete);
    EXPECT_FALSE(results.at(1).verdicts.at(0).complete);
  }
}

// A store that knows nothing of records says the same of all.
TEST(Check, AStoreThatTellsNoRecordsApartIsBelievedAboutAll) {
  struct Plain final : HostStore {
    [[nodiscard]] std::optional<Instant> missing_before() const noexcept override { return kNow; }
  };
  EXPECT_EQ(Plain().record_missing_before("fcap:{u}"), kNow);
}

TEST(Check, AKeptCapClaimsNoCompletenessWhileEventsAreMissing) {
  CheckerOptions options = patient_options();
  options.local.cached_caps_max = 1000;
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("day", "c1", 2)}));
  world.store->records["fcap:{u}"] = record_of("c1", 2);
  world.store->answer_at_once = StoreCode::kOk;
  const Candidate candidates[] = {{"c1"}};
  EXPECT_TRUE(world.checker->check("u", candidates).verdicts.at(0).complete);
  const Verdict kept = world.checker->check("u", candidates).verdicts.at(0);
  EXPECT_TRUE(kept.cached);
  EXPECT_TRUE(kept.complete);
  world.store->missing = kNow - 2h;
  const Verdict doubted = world.checker->check("u", candidates).verdicts.at(0);
  EXPECT_TRUE(doubted.cached);
  EXPECT_FALSE(doubted.complete);
  EXPECT_FALSE(doubted.allowed);
  world.store->only_missing_in = "fcap:{another}";
  EXPECT_TRUE(world.checker->check("u", candidates).verdicts.at(0).complete);
}

TEST(Check, WhatThisProcessHasShownCapsAlsoWhileEventsAreMissing) {
  CheckerOptions options = patient_options();
  options.local.shown_max = 1000;
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("day", "c1", 1)}));
  world.store->answer_at_once = StoreCode::kUnavailable;
  world.store->missing = kNow;
  ASSERT_TRUE(world.checker->note_shown({"u", {"c1"}, "i1"}));
  const Candidate candidates[] = {{"c1"}};
  EXPECT_FALSE(world.checker->check("u", candidates).verdicts.at(0).allowed);
}

TEST(CheckBatch, AnswersInTheOrderOfItsUsers) {
  CheckerOptions options = patient_options();
  options.null_user_ids = {"0"};
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("r2", "c1", 2)}));
  world.store->answer_at_once = StoreCode::kOk;
  world.store->records["fcap:{full}"] = record_of("c1", 2);
  const Candidate one[] = {{"c1"}};
  const Candidate two[] = {{"c2"}, {"c1"}};
  const CheckRequest users[] = {{"full", two}, {"0", one}, {"new", one}, {"full", {}}};
  const std::vector<CheckResult> results = world.checker->check_batch(users);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_TRUE(results[0].verdicts[0].allowed);
  EXPECT_FALSE(results[0].verdicts[1].allowed);
  EXPECT_EQ(results[1].reason, Reason::kNoUser);
  EXPECT_TRUE(results[2].verdicts[0].allowed);
  EXPECT_THAT(results[3].verdicts, IsEmpty());
  EXPECT_EQ(world.checker->stats().checks, 4U);
  EXPECT_THAT(world.checker->check_batch({}), IsEmpty());
}

TEST(FirstAllowed, SkipsWhatIsCapped) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1), sliding_rule("r2", "c2", 0)}));
  world.store->answer_at_once = StoreCode::kOk;
  world.store->records["fcap:{u}"] = record_of("c1", 1);
  const Candidate ranked[] = {{"c1"}, {"c2"}, {"c3"}, {"c4"}};
  EXPECT_THAT(world.checker->first_allowed("u", ranked, 1).picked, ElementsAre(2));
  EXPECT_THAT(world.checker->first_allowed("u", ranked, 9).picked, ElementsAre(2, 3));
  EXPECT_THAT(world.checker->first_allowed("u", ranked, 0).picked, IsEmpty());
  EXPECT_EQ(world.store->get_count, 2U);
}

TEST(FirstAllowed, EarlierPicksCountForAllTheirScopes) {
  ScriptedChecker world;
  Rule advertiser = sliding_rule("per advertiser", "a1", 3);
  advertiser.scope = Scope::kAdvertiser;
  world.checker->set_rules(rule_set({sliding_rule("per campaign", "c1", 2), advertiser},
                                    {{.id = "c1", .advertiser_id = "a1", .groups = {}},
                                     {.id = "c2", .advertiser_id = "a1", .groups = {}}}));
  world.store->answer_at_once = StoreCode::kOk;
  world.store->records["fcap:{u}"] = record_of("c1", 1);
  // One c1 is in the history: a second one fits, then a c2, and then a1 is full.
  const Candidate ranked[] = {{"c1", "x"}, {"c1", "y"}, {"c2"}, {"c2"}, {"c9"}};
  EXPECT_THAT(world.checker->first_allowed("u", ranked, 5).picked, ElementsAre(0, 2, 4));
}

TEST(FirstAllowed, FindsTheOneThatPassesBehindManyThatDoNot) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r0", "c1", 0)}));
  world.store->answer_at_once = StoreCode::kNotFound;
  std::vector<Candidate> ranked(100, Candidate{"c1"});
  ranked.push_back({"c2"});
  EXPECT_THAT(world.checker->first_allowed("u", ranked, 2).picked, ElementsAre(100));
}

TEST(FirstAllowed, EachOfManyPicksOfOneCampaignCounts) {
  constexpr std::size_t kLimit = 2'000;
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", kLimit)}));
  world.store->answer_at_once = StoreCode::kNotFound;
  std::vector<std::string> creatives(kLimit + 500);
  std::vector<Candidate> ranked;
  for (std::size_t i = 0; i < creatives.size(); ++i) {
    creatives[i] = std::to_string(i);
    ranked.push_back({"c1", creatives[i]});
  }
  EXPECT_THAT(world.checker->first_allowed("u", ranked, ranked.size()).picked, SizeIs(kLimit));
}

TEST(FirstAllowed, EarlierPicksCountEvenWhereAnErasureReachesBeyondNow) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1, 1h)}));
  world.store->answer_at_once = StoreCode::kOk;
  ledger::append_erased_before(kNow + 5min, world.store->records["fcap:{u}"]);
  const Candidate ranked[] = {{"c1"}, {"c1"}, {"c1"}, {"c2"}};
  EXPECT_THAT(world.checker->first_allowed("u", ranked, 4).picked, ElementsAre(0, 3));
}

TEST(FirstAllowed, CountsWhatAShadowRuleWouldHaveCapped) {
  ScriptedChecker world;
  Rule shadow = sliding_rule("s", "c2", 0);
  shadow.mode = Rule::Mode::kShadow;
  world.checker->set_rules(rule_set({shadow, sliding_rule("r1", "c1", 0)}));
  world.store->answer_at_once = StoreCode::kNotFound;
  const Candidate ranked[] = {{"c1"}, {"c2"}, {"c2"}};
  EXPECT_THAT(world.checker->first_allowed("u", ranked, 1).picked, ElementsAre(1));
  const CheckerStats stats = world.checker->stats();
  EXPECT_EQ(stats.shadow_capped, 1U);
  EXPECT_EQ(stats.candidates, 2U);
  EXPECT_TRUE(world.checker->check("u", ranked).verdicts[1].shadow_capped);
}

TEST(FirstAllowed, SaysWhyItChoseWithoutTheHistory) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  world.store->answer_at_once = StoreCode::kTimeout;
  const Candidate ranked[] = {{"c1"}, {"c2"}};
  const PickResult result = world.checker->first_allowed("u", ranked, 1);
  EXPECT_THAT(result.picked, ElementsAre(0));
  EXPECT_EQ(result.reason, Reason::kTimeout);
}

TEST(CheckerOptions, EveryValueOutOfRangeIsNamed) {
  CheckerOptions options = patient_options();
  options.store = std::make_shared<ScriptedStore>();
  options.key_prefix = "a{b";
  options.retention = 1min;
  options.deadline = 61s;
  options.null_user_ids = {std::string(257, '0')};
  options.rules.poll_interval = 1ms;
  options.rules.shrink_refused_below = 1.5;
  const auto made = Checker::create(options);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  for (const char* name : {"key_prefix", "retention", "deadline", "null_user_ids",
                           "rules.poll_interval", "rules.shrink_refused_below"}) {
    EXPECT_THAT(made.status().text(), HasSubstr(name));
  }
}

TEST(CheckerStats, CountWhatWasAnswered) {
  ScriptedChecker world;
  Rule shadow = sliding_rule("shadow", "c2", 0);
  shadow.mode = Rule::Mode::kShadow;
  world.checker->set_rules(rule_set({sliding_rule("r0", "c1", 0), shadow}));
  world.store->answer_at_once = StoreCode::kNotFound;
  const Candidate candidates[] = {{"c1"}, {"c2"}, {"c3"}};
  static_cast<void>(world.checker->check("u", candidates));
  const CheckerStats stats = world.checker->stats();
  EXPECT_EQ(stats.checks, 1U);
  EXPECT_EQ(stats.candidates, 3U);
  EXPECT_EQ(stats.allowed, 2U);
  EXPECT_EQ(stats.capped, 1U);
  EXPECT_EQ(stats.shadow_capped, 1U);
  EXPECT_EQ(stats.pending, 0U);
  EXPECT_EQ(stats.rules.count, 2U);
  EXPECT_GE(stats.rules.age, 0ms);
}

TEST(CheckerStats, RuleSetAgeIsMinusOneBeforeTheFirst) {
  ScriptedChecker world;
  EXPECT_EQ(world.checker->stats().rules.age, -1ms);
}

}  // namespace check_test
}  // namespace fcap::checker_test
