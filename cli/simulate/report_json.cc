// What a simulation found, for programs.
#include <ostream>

#include <nlohmann/json.hpp>

#include "cli/simulate/simulation.h"
#include "cli/simulate/wording.h"

namespace fcap::cli {
namespace {

using nlohmann::ordered_json;

double share_of(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

ordered_json frequencies(const Frequencies& before, const Frequencies& after, const char* unit) {
  ordered_json rows = ordered_json::array();
  for (std::size_t i = 0; i < before.size(); ++i) {
    rows.push_back({{"impressions", frequency_label(i)},
                    {std::string(unit) + "_before", before[i]},
                    {unit, after[i]}});
  }
  return rows;
}

ordered_json log_json(const Simulation& simulation) {
  ordered_json rejections = ordered_json::array();
  for (const Rejections::Told& told : simulation.rejections.first) {
    rejections.push_back({{"source", told.source}, {"line", told.line}, {"reason", told.reason}});
  }
  return {{"sources", simulation.sources},
          {"impressions", simulation.impressions},
          {"other_events", simulation.other_events},
          {"users", simulation.reach},
          {"campaigns", simulation.campaigns},
          {"first_at", to_ms(simulation.first_at)},
          {"last_at", to_ms(simulation.last_at)},
          {"repeated", simulation.repeated},
          {"without_user", simulation.without_user},
          {"rejected", simulation.rejections.count},
          {"rejections", rejections}};
}

ordered_json outcome_json(const Simulation& simulation, const Outcome& outcome) {
  ordered_json rules = ordered_json::array();
  for (const RuleCost& rule : outcome.rules) {
    rules.push_back({{"id", rule.id},
                     {"description", rule.description},
                     {"blocked", rule.blocked},
                     {"blocked_share", share_of(rule.blocked, simulation.impressions)}});
  }
  ordered_json campaigns = ordered_json::array();
  for (const CampaignOutcome& campaign : outcome.campaigns) {
    campaigns.push_back({{"id", campaign.id},
                         {"impressions", campaign.impressions},
                         {"shown", campaign.shown},
                         {"blocked", campaign.impressions - campaign.shown},
                         {"reach_before", campaign.reach_before},
                         {"reach", campaign.reach}});
  }
  return {{"name", outcome.name},
          {"version", outcome.version},
          {"summary", headline(simulation, outcome)},
          {"impressions", simulation.impressions},
          {"shown", outcome.shown},
          {"blocked", outcome.blocked},
          {"blocked_share", share_of(outcome.blocked, simulation.impressions)},
          {"shadow_blocked", outcome.shadow_blocked},
          {"follow_ups_blocked", outcome.follow_ups_blocked},
          {"reach_before", simulation.reach},
          {"reach", outcome.reach},
          {"average_per_user_before", share_of(simulation.impressions, simulation.reach)},
          {"average_per_user", share_of(outcome.shown, outcome.reach)},
          {"per_user", frequencies(simulation.per_user, outcome.per_user, "users")},
          {"per_user_and_campaign", frequencies(simulation.per_pair, outcome.per_pair, "pairs")},
          {"rules", rules},
          {"campaigns", campaigns},
          {"warnings", outcome.warnings}};
}

}  // namespace

void print_json(const Simulation& simulation, std::ostream& out) {
  ordered_json json;
  json["log"] = log_json(simulation);
  json["rule_sets"] = ordered_json::array();
  for (const Outcome& outcome : simulation.outcomes) {
    json["rule_sets"].push_back(outcome_json(simulation, outcome));
  }
  out << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
}

}  // namespace fcap::cli
