// Why a check answers as it does.
#include <future>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcap/explain.h>

#include "fixtures.h"

namespace fcap::checker_test {
namespace explain_test {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::string_view kKey = "fcap:{u}";

// A user who has seen c1 twice.
class Explained : public ::testing::Test {
 protected:
  Explained() {
    world_.store->answer_at_once = StoreCode::kOk;
    world_.store->records[std::string(kKey)] = record_of("c1", 2);
    world_.checker->set_rules(rule_set(
        {sliding_rule("two", "c1", 2), sliding_rule("none", "c0", 0), sliding_rule("five", "*", 5)},
        {}, 9));
  }

  Explanation explain(const CheckOptions& options = kPatient, std::string_view user = "u") {
    return world_.checker->explain(user, candidates_, options);
  }
  CheckResult check() { return world_.checker->check("u", candidates_, kPatient); }

  const Candidate candidates_[3] = {{"c1", "x"}, {"c2"}, {"c0"}};
  ScriptedChecker world_;
};

TEST_F(Explained, SaysWhatEachRuleCountedWhatIsLeftAndUntilWhen) {
  const Explanation explanation = explain();
  EXPECT_EQ(explanation.user, "u");
  EXPECT_EQ(explanation.at, kNow);
  EXPECT_EQ(explanation.reason, Reason::kPassed);
  EXPECT_EQ(explanation.rules->version(), 9U);
  ASSERT_THAT(explanation.candidates, SizeIs(3));
  const CandidateExplanation& capped = explanation.candidates[0];
  EXPECT_EQ(capped.campaign, "c1");
  EXPECT_EQ(capped.creative, "x");
  ASSERT_THAT(capped.applicable, SizeIs(1));
  const RuleAccount& rule = capped.applicable[0];
  EXPECT_EQ(rule.rule->id, "two");
  EXPECT_EQ(rule.count, 2U);
  EXPECT_EQ(rule.left, 0U);
  EXPECT_TRUE(rule.stands_in_way);
  EXPECT_EQ(rule.eligible_at, kNow - 2min + 24h);
  ASSERT_THAT(capped.replaced, SizeIs(1));
  EXPECT_EQ(capped.replaced[0].replaced_by, "two");
  ASSERT_THAT(explanation.candidates[1].applicable, SizeIs(1));
  EXPECT_EQ(explanation.candidates[1].applicable[0].target, "c2");
  EXPECT_EQ(explanation.candidates[1].applicable[0].left, 5U);
}

TEST_F(Explained, SaysWhereTheRecordComesFrom) {
  const RecordAccount record = explain().record;
  EXPECT_EQ(record.key, kKey);
  EXPECT_EQ(record.bytes, record_of("c1", 2).size());
  EXPECT_EQ(record.entries, 2U);
  EXPECT_EQ(record.reservations, 0U);
  EXPECT_FALSE(record.stale);
  EXPECT_FALSE(record.left_out.has_value());
  const RecordAccount none = explain(kPatient, "nobody").record;
  EXPECT_EQ(none.bytes, 0U);
  EXPECT_EQ(none.entries, 0U);
}

TEST_F(Explained, HasTheVerdictsOfACheck) {
  const auto same = [&] {
    const CheckResult checked = check();
    const Explanation explanation = explain();
    ASSERT_EQ(explanation.reason, checked.reason);
    for (std::size_t i = 0; i < checked.verdicts.size(); ++i) {
      const Verdict& verdict = explanation.candidates.at(i).verdict;
      EXPECT_EQ(verdict.allowed, checked.verdicts[i].allowed) << i;
      EXPECT_EQ(verdict.reason, checked.verdicts[i].reason) << i;
      EXPECT_EQ(verdict.rule_id, checked.verdicts[i].rule_id) << i;
      EXPECT_EQ(verdict.count, checked.verdicts[i].count) << i;
      EXPECT_EQ(verdict.eligible_at, checked.verdicts[i].eligible_at) << i;
      EXPECT_EQ(verdict.complete, checked.verdicts[i].complete) << i;
      EXPECT_EQ(verdict.stale, checked.verdicts[i].stale) << i;
    }
  };
  same();
  world_.store->stale = true;
  same();
  world_.store->answer_at_once = StoreCode::kUnavailable;
  same();
  world_.store->answer_at_once = StoreCode::kOk;
  world_.store->records[std::string(kKey)] = "garbage";
  same();
}

TEST_F(Explained, CountsWhatThisProcessHasJustShown) {
  ASSERT_TRUE(world_.checker->note_shown({.subject = "u", .candidate = {"c2"}, .event_id = "e1"}));
  const Explanation explanation = explain();
  EXPECT_EQ(explanation.record.noted, 1U);
  EXPECT_EQ(explanation.record.entries, 3U);
  EXPECT_EQ(explanation.candidates[1].applicable.at(0).count, 1U);
}

TEST_F(Explained, OfAnInstantThatIsPastLeavesOutWhatCameLater) {
  CheckOptions options = kPatient;
  options.now = kNow - 90s;
  const Explanation explanation = explain(options);
  EXPECT_EQ(explanation.at, kNow - 90s);
  EXPECT_EQ(explanation.record.left_out, 1U);
  EXPECT_EQ(explanation.candidates[0].applicable.at(0).count, 1U);
  EXPECT_TRUE(explanation.candidates[0].verdict.allowed);
}

TEST_F(Explained, FailsWithTheReasonsOfACheck) {
  world_.store->answer_at_once = StoreCode::kBreakerOpen;
  const Explanation explanation = explain();
  EXPECT_EQ(explanation.reason, Reason::kBreakerOpen);
  ASSERT_THAT(explanation.candidates, SizeIs(3));
  EXPECT_EQ(explanation.candidates[0].verdict.reason, Reason::kBreakerOpen);
  EXPECT_TRUE(explanation.candidates[0].verdict.allowed);
  EXPECT_THAT(explanation.candidates[0].applicable, IsEmpty());
  EXPECT_FALSE(explanation.candidates[2].verdict.allowed) << "a limit of 0 caps in any case";
  EXPECT_EQ(explain(kPatient, "").reason, Reason::kNoUser);
  EXPECT_EQ(explain(kPatient, std::string(300, 'u')).reason, Reason::kInvalid);
  world_.checker->set_rules(nullptr);
  EXPECT_EQ(explain().reason, Reason::kNoRules);
}

TEST_F(Explained, ACandidateThatIsInvalidHasNoRules) {
  const std::string id(300, 'c');
  const Candidate candidates[] = {{id}, {"c1"}};
  const Explanation explanation = world_.checker->explain("u", candidates, kPatient);
  EXPECT_EQ(explanation.candidates.at(0).verdict.reason, Reason::kInvalid);
  EXPECT_THAT(explanation.candidates.at(0).applicable, IsEmpty());
  EXPECT_FALSE(explanation.candidates.at(1).verdict.allowed);
}

TEST_F(Explained, IsNoCheck) {
  (void)explain();
  EXPECT_EQ(world_.checker->stats().checks, 0U);
}

TEST_F(Explained, OutlivesTheChecker) {
  const Explanation explanation = explain();
  world_.checker.reset();
  EXPECT_EQ(explanation.candidates[0].applicable.at(0).rule->id, "two");
  EXPECT_EQ(explanation.candidates[0].verdict.rule_id, "two");
  EXPECT_THAT(explanation_text(explanation), HasSubstr("by rule \"two\", 2 of 2"));
  EXPECT_THAT(explanation_json(explanation), HasSubstr(R"("rule":"two")"));
}

TEST_F(Explained, InsideACallbackIsRefused) {
  Reason reason = Reason::kPassed;
  std::promise<void> over;
  (void)world_.checker->check_async("u", candidates_, kPatient, [&](const CheckResult&) {
    reason = explain().reason;
    over.set_value();
  });
  over.get_future().wait();
  EXPECT_EQ(reason, Reason::kReentrant);
}

TEST(ExplainedText, SaysWhoIsRefusedForLackOfAUser) {
  CheckerOptions options = patient_options();
  options.no_user = CheckerOptions::NoUserPolicy::kCap;
  ScriptedChecker world(std::move(options));
  world.checker->set_rules(rule_set({sliding_rule("two", "c1", 2)}));
  const Candidate candidates[] = {{"c1"}};
  const Explanation explanation = world.checker->explain("", candidates, kPatient);
  EXPECT_FALSE(explanation.candidates.at(0).verdict.allowed);
  EXPECT_THAT(explanation_text(explanation), HasSubstr("refused  no user id"));
}

// Where a cap is certain without it, the verdict alone does not show that nothing was read.
TEST(ExplainedText, SaysThatTheHistoryWasNotRead) {
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kUnavailable;
  world.checker->set_rules(rule_set({sliding_rule("one", "c1", 1), sliding_rule("no", "c0", 0)}));
  ASSERT_TRUE(world.checker->note_shown({"u", {"c1"}, "e1", kNow}));
  const Candidate candidates[] = {{"c1"}};
  const Explanation explanation = world.checker->explain("u", candidates, kPatient);
  EXPECT_EQ(explanation.candidates.at(0).verdict.reason, Reason::kCapped);
  EXPECT_THAT(explanation_text(explanation), HasSubstr("without the history (unavailable)"));
  EXPECT_EQ(world.checker->stats().certain_verdicts, 0U) << "it is no check";
}

TEST(ExplainedText, SaysWhatWasLeftOutOfAnInstantThatIsPast) {
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kOk;
  world.store->records["fcap:{u}"] = record_of("c1", 2);
  world.checker->set_rules(rule_set({sliding_rule("two", "c1", 2)}));
  CheckOptions options = kPatient;
  options.now = kNow - 90s;
  const Candidate candidates[] = {{"c1"}};
  EXPECT_THAT(explanation_text(world.checker->explain("u", candidates, options)),
              HasSubstr("1 later entry was left out"));
}

// A cap that was read from the master stands against what a replica says later.
TEST(ExplainedOfAReplica, HasTheVerdictsOfACheckThatKeepsCaps) {
  CheckerOptions options = patient_options();
  options.local.cached_caps_max = 1000;
  ScriptedChecker world(std::move(options));
  world.store->answer_at_once = StoreCode::kOk;
  world.store->records["fcap:{u}"] = record_of("c1", 2);
  world.checker->set_rules(rule_set({sliding_rule("two", "c1", 2), sliding_rule("c2", "c2", 2)}));
  const Candidate candidates[] = {{"c1"}, {"c2"}};
  ASSERT_FALSE(world.checker->check("u", candidates, kPatient).verdicts[0].allowed);
  world.store->stale = true;
  world.store->records["fcap:{u}"] = record_of("c1", 1);
  const std::uint64_t cached = world.checker->stats().cache.verdicts;
  const Explanation explanation = world.checker->explain("u", candidates, kPatient);
  EXPECT_EQ(world.checker->stats().cache.verdicts, cached) << "it is no check";
  const CheckResult checked = world.checker->check("u", candidates, kPatient);
  ASSERT_FALSE(checked.verdicts[0].allowed);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(explanation.candidates.at(i).verdict.allowed, checked.verdicts[i].allowed) << i;
    EXPECT_EQ(explanation.candidates.at(i).verdict.stale, checked.verdicts[i].stale) << i;
  }
}

}  // namespace explain_test
}  // namespace fcap::checker_test
