// What check and explain say where reservations count and rules are hard.
#include <memory>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/answer.h"
#include "ledger/ids.h"

namespace fcap::cli_test {
namespace reservations_test {

using nlohmann::json;
using std::chrono::hours;
using std::chrono::minutes;
using ::testing::HasSubstr;

constexpr Instant kNow = instant_from_ms(1'792'843'200'000);

// One event and one live reservation of c1, which a hard rule lets show `limit` times a day.
cli::Answer answer_with(std::uint32_t limit) {
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
  cli::Question question;
  question.user = "u1";
  question.candidates = {{.campaign = "c1", .creative = ""}};
  cli::JudgedBy by;
  by.rules = rules.value();
  return cli::answer(question, history, by, kNow);
}

TEST(AnswersWithReservations, SayHowManyAreReservedAndThatTheInstantMayMove) {
  const cli::Answer answer = answer_with(2);
  const json verdict = json::parse(to_json_line(answer)).at("verdicts").at(0);
  EXPECT_EQ(verdict.at("allowed"), false);
  EXPECT_EQ(verdict.at("provisional"), true);
  EXPECT_EQ(verdict.at("needs_reserve"), true);
  EXPECT_EQ(verdict.at("eligible_at"), to_ms(kNow + minutes{4}));
  const json& rule = verdict.at("rules").at(0);
  EXPECT_EQ(rule.at("enforcement"), "hard");
  EXPECT_EQ(rule.at("count"), 2);
  EXPECT_EQ(rule.at("reserved"), 1);
  std::ostringstream text;
  print_explanations(answer, cli::LocalTime(), text);
  EXPECT_THAT(text.str(), HasSubstr("in any 1d, hard\n"));
  EXPECT_THAT(text.str(), HasSubstr(", 1 of them reserved: stands in the way"));
  EXPECT_THAT(text.str(), HasSubstr("or later if reservations are confirmed"));
}

TEST(AnswersWithReservations, SayThatAHardRuleAsksForOne) {
  const cli::Answer answer = answer_with(5);
  std::ostringstream text;
  print_verdicts(answer, cli::LocalTime(), text);
  EXPECT_THAT(text.str(), HasSubstr("allowed  a hard rule applies: reserve it before showing"));
  EXPECT_EQ(json::parse(to_json_line(answer)).at("verdicts").at(0).at("needs_reserve"), true);
}

}  // namespace reservations_test
}  // namespace fcap::cli_test
