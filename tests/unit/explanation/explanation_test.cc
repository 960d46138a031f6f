// What an explanation says, and how it is printed.
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "explanation/explain_history.h"
#include "explanation/explanation_text.h"
#include "ledger/ids.h"

namespace fcap::explanation {
namespace explanation_test {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;

constexpr Instant kNow = instant_from_ms(1'792'843'200'000);

// One event and one live reservation of c1, which a hard rule lets show `limit` times a day.
Explanation explained(std::uint32_t limit) {
  RuleSetSpec spec;
  spec.rules = {{.id = "launch",
                 .target = "c1",
                 .limit = limit,
                 .window = {.kind = Window::Kind::kSliding, .length = hours{24}},
                 .enforcement = Rule::Enforcement::kHard}};
  auto rules = RuleSet::build(std::move(spec), {});
  EXPECT_TRUE(rules.ok());
  ledger::Entry event{
      .time = kNow - hours{1}, .campaign = ledger::id_hash("c1"), .creative = 0, .fingerprint = 1};
  ledger::Ledger history;
  history.merge(event);
  event.fingerprint = 2;
  history.merge(ledger::Reservation{.event = event, .expires = kNow + minutes{4}});
  Explanation explanation{.user = "u1", .at = kNow, .rules = rules.value()};
  rules::Evaluator evaluator;
  const Candidate candidates[] = {{"c1"}};
  explain_history(evaluator, history, candidates, {}, false, explanation);
  return explanation;
}

TEST(ExplanationsWithReservations, SayHowManyAreReservedAndThatTheInstantMayMove) {
  const Explanation explanation = explained(2);
  EXPECT_EQ(explanation.record.entries, 1U);
  EXPECT_EQ(explanation.record.reservations, 1U);
  const json verdict = json::parse(explanation_json(explanation)).at("verdicts").at(0);
  EXPECT_EQ(verdict.at("allowed"), false);
  EXPECT_EQ(verdict.at("provisional"), true);
  EXPECT_EQ(verdict.at("needs_reserve"), true);
  EXPECT_EQ(verdict.at("eligible_at"), to_ms(kNow + minutes{4}));
  const json& rule = verdict.at("rules").at(0);
  EXPECT_EQ(rule.at("enforcement"), "hard");
  EXPECT_EQ(rule.at("count"), 2);
  EXPECT_EQ(rule.at("reserved"), 1);
  EXPECT_EQ(rule.at("left"), 0);
  const std::string text = explanation_text(explanation);
  EXPECT_THAT(text, HasSubstr("in any 1d, hard\n"));
  EXPECT_THAT(text, HasSubstr(", 1 of them reserved: stands in the way"));
  EXPECT_THAT(text, HasSubstr("or later if reservations are confirmed"));
}

TEST(ExplanationsWithReservations, SayThatAHardRuleAsksForOne) {
  const Explanation explanation = explained(5);
  const auto utc = [](Instant instant) { return base::format_instant(instant); };
  EXPECT_THAT(verdicts_text(explanation, utc),
              HasSubstr("allowed  a hard rule applies: reserve it before showing"));
  const json verdict = json::parse(explanation_json(explanation)).at("verdicts").at(0);
  EXPECT_EQ(verdict.at("needs_reserve"), true);
  EXPECT_EQ(verdict.at("rules").at(0).at("left"), 3);
}

TEST(Explanations, WithoutAHistorySayWhy) {
  const Explanation explanation{
      .user = "u1",
      .at = kNow,
      .reason = Reason::kTimeout,
      .candidates = {{.campaign = "c1", .verdict = {.reason = Reason::kTimeout}}}};
  EXPECT_EQ(explanation_text(explanation), "user u1 at " + base::format_instant(kNow) +
                                               ", no rules\n"
                                               "  answered without the history (timeout): "
                                               "the store did not answer before the deadline\n"
                                               "  c1: allowed  without the history: timeout\n");
  const json object = json::parse(explanation_json(explanation));
  EXPECT_EQ(object.at("reason"), "timeout");
  EXPECT_FALSE(object.contains("rule_set_version"));
}

}  // namespace explanation_test
}  // namespace fcap::explanation
