#include "cli/answer.h"

#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "rule_text/rule_words.h"
#include "rules/rule_set_access.h"

namespace fcap::cli {
namespace {

using nlohmann::ordered_json;

ordered_json instant_json(const std::optional<Instant>& instant) {
  return instant ? ordered_json(to_ms(*instant)) : ordered_json(nullptr);
}

ordered_json account_json(const rules::RuleAccount& account) {
  const Rule& rule = *account.rule;
  ordered_json json;
  json["id"] = rule.id;
  json["scope"] = rule_text::word_of(rule_text::kScopeWords, rule.scope);
  json["target"] = account.target;
  json["event_type"] = rule_text::word_of(rule_text::kEventTypeWords, rule.event_type);
  json["mode"] = rule_text::word_of(rule_text::kModeWords, rule.mode);
  json["enforcement"] = rule_text::word_of(rule_text::kEnforcementWords, rule.enforcement);
  if (rule.segment) json["segment"] = *rule.segment;
  json["count"] = account.count;
  json["reserved"] = account.reserved;
  json["limit"] = rule.limit ? ordered_json(*rule.limit) : ordered_json(nullptr);
  json["stands_in_way"] = account.stands_in_way;
  json["eligible_at"] = instant_json(account.eligible_at);
  json["counted_from"] = to_ms(account.counted_from);
  json["counted_until"] = instant_json(account.counted_until);
  json["complete"] = account.complete;
  if (!account.replaced_by.empty()) json["replaced_by"] = account.replaced_by;
  return json;
}

ordered_json verdict_json(const CandidateText& candidate, const rules::Explanation& explanation,
                          Instant at) {
  const Verdict& verdict = explanation.verdict;
  ordered_json json;
  json["candidate"] = candidate.text();
  json["campaign"] = candidate.campaign;
  json["creative"] =
      candidate.creative.empty() ? ordered_json(nullptr) : ordered_json(candidate.creative);
  json["allowed"] = verdict.allowed;
  json["reason"] = to_string(verdict.reason);
  json["complete"] = verdict.complete;
  json["needs_reserve"] = verdict.needs_reserve;
  if (verdict.reason == Reason::kCapped) {
    json["provisional"] = verdict.provisional;
    json["rule"] = verdict.rule_id;
    json["count"] = verdict.count;
    json["limit"] = verdict.limit;
  }
  json["eligible_at"] =
      verdict.allowed ? ordered_json(to_ms(at)) : instant_json(verdict.eligible_at);
  json["rules"] = ordered_json::array();
  for (const rules::RuleAccount& account : explanation.applicable) {
    json["rules"].push_back(account_json(account));
  }
  if (!explanation.replaced.empty()) {
    json["replaced"] = ordered_json::array();
    for (const rules::RuleAccount& account : explanation.replaced) {
      json["replaced"].push_back(account_json(account));
    }
  }
  return json;
}

std::string line_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

Answer answer(const Question& question, ledger::Ledger& history, const JudgedBy& by, Instant now) {
  Answer result{.question = question,
                .at = question.at.value_or(now),
                .left_out = {},
                .by = by,
                .reason = Reason::kPassed,
                .complete_since = history.complete_since(),
                .explanations = {}};
  if (question.at) {
    const std::size_t before = history.size();
    history.drop_after(*question.at);
    result.left_out = before - history.size();
  }
  const std::vector<std::string_view> segments(question.segments.begin(), question.segments.end());
  rules::Evaluator evaluator;
  for (const CandidateText& candidate : question.candidates) {
    result.explanations.push_back(
        evaluator.explain({.rules = *by.rules,
                           .ledger = history,
                           .now = result.at,
                           .segments = segments,
                           .stored = by.segments.get(),
                           .user = question.user,
                           .missing_before = by.stale ? result.at : by.missing_before},
                          candidate.view()));
  }
  return result;
}

Answer answer_no_user(const Question& question, const JudgedBy& by, Instant now) {
  rules::Explanation explanation;
  explanation.verdict.reason = Reason::kNoUser;
  return {.question = question,
          .at = question.at.value_or(now),
          .left_out = {},
          .by = by,
          .reason = Reason::kNoUser,
          .complete_since = {},
          .explanations = std::vector(question.candidates.size(), explanation)};
}

std::string to_json_line(const Answer& answer) {
  ordered_json json;
  if (!answer.question.id_json.empty()) {
    json["id"] = ordered_json::parse(answer.question.id_json, nullptr, false);
  }
  json["user"] = answer.question.user;
  json["at"] = to_ms(answer.at);
  if (answer.left_out) {
    json["as_of"] = {{"left_out", *answer.left_out}, {"arrival_times", "unknown"}};
  }
  json["rule_set_version"] = answer.by.rules->version();
  if (answer.by.segments) json["segment_set_version"] = answer.by.segments->version();
  json["time_zone_data_version"] =
      rules::RuleSetAccess::compiled(*answer.by.rules).zone_data_version;
  json["reason"] = to_string(answer.reason);
  if (answer.complete_since) json["complete_since"] = to_ms(*answer.complete_since);
  if (answer.by.missing_before && answer.by.missing_before != Instant::max())
    json["missing_before"] = to_ms(*answer.by.missing_before);
  if (answer.by.stale) json["stale"] = true;
  json["verdicts"] = ordered_json::array();
  for (std::size_t i = 0; i < answer.explanations.size(); ++i) {
    json["verdicts"].push_back(
        verdict_json(answer.question.candidates[i], answer.explanations[i], answer.at));
  }
  return line_of(json);
}

std::string to_json_line(const Status& failure, std::size_t line_number, const Question* question) {
  ordered_json json;
  if (question != nullptr && !question->id_json.empty()) {
    json["id"] = ordered_json::parse(question->id_json, nullptr, false);
  }
  if (question != nullptr) json["user"] = question->user;
  json["line"] = line_number;
  json["error"] = failure.text();
  return line_of(json);
}

}  // namespace fcap::cli
