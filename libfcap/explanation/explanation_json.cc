#include "explanation/explanation_json.h"

#include <nlohmann/json.hpp>

#include "rule_text/rule_words.h"

namespace fcap::explanation {
namespace {

using nlohmann::ordered_json;

ordered_json instant_json(const std::optional<Instant>& instant) {
  return instant ? ordered_json(to_ms(*instant)) : ordered_json(nullptr);
}

ordered_json account_json(const RuleAccount& account) {
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
  json["left"] = account.left ? ordered_json(*account.left) : ordered_json(nullptr);
  json["stands_in_way"] = account.stands_in_way;
  json["eligible_at"] = instant_json(account.eligible_at);
  json["counted_from"] = to_ms(account.counted_from);
  json["counted_until"] = instant_json(account.counted_until);
  json["complete"] = account.complete;
  if (!account.replaced_by.empty()) json["replaced_by"] = account.replaced_by;
  return json;
}

ordered_json candidate_json(const CandidateExplanation& explained, Instant at) {
  const Verdict& verdict = explained.verdict;
  ordered_json json;
  json["candidate"] = explained.creative.empty() ? explained.campaign
                                                 : explained.campaign + "/" + explained.creative;
  json["campaign"] = explained.campaign;
  json["creative"] =
      explained.creative.empty() ? ordered_json(nullptr) : ordered_json(explained.creative);
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
  for (const RuleAccount& account : explained.applicable) {
    json["rules"].push_back(account_json(account));
  }
  if (!explained.replaced.empty()) {
    json["replaced"] = ordered_json::array();
    for (const RuleAccount& account : explained.replaced) {
      json["replaced"].push_back(account_json(account));
    }
  }
  return json;
}

ordered_json record_json(const RecordAccount& record) {
  ordered_json json;
  json["key"] = record.key.empty() ? ordered_json(nullptr) : ordered_json(record.key);
  json["bytes"] = record.bytes;
  json["entries"] = record.entries;
  json["reservations"] = record.reservations;
  if (record.noted > 0) json["noted"] = record.noted;
  return json;
}

}  // namespace

ordered_json json_of(const Explanation& explanation) {
  const RecordAccount& record = explanation.record;
  ordered_json json;
  json["user"] = explanation.user;
  json["at"] = to_ms(explanation.at);
  if (record.left_out) {
    json["as_of"] = {{"left_out", *record.left_out}, {"arrival_times", "unknown"}};
  }
  if (explanation.rules != nullptr) json["rule_set_version"] = explanation.rules->version();
  if (explanation.segments != nullptr) {
    json["segment_set_version"] = explanation.segments->version();
  }
  if (!explanation.time_zone_data.empty()) {
    json["time_zone_data_version"] = explanation.time_zone_data;
  }
  json["reason"] = to_string(explanation.reason);
  json["record"] = record_json(record);
  if (record.complete_since) json["complete_since"] = to_ms(*record.complete_since);
  if (record.missing_before && record.missing_before != Instant::max()) {
    json["missing_before"] = to_ms(*record.missing_before);
  }
  if (record.stale) json["stale"] = true;
  json["verdicts"] = ordered_json::array();
  for (const CandidateExplanation& explained : explanation.candidates) {
    json["verdicts"].push_back(candidate_json(explained, explanation.at));
  }
  return json;
}

}  // namespace fcap::explanation

namespace fcap {

std::string explanation_json(const Explanation& explanation) {
  return explanation::json_of(explanation)
      .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace fcap
