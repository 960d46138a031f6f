// What a simulation found, for programs.
#include <algorithm>
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
  for (const FrequencyBucket& bucket : frequency_buckets(std::max(before.most(), after.most()))) {
    rows.push_back({{"from", bucket.first},
                    {"to", bucket.last},
                    {std::string(unit) + "_before", before.between(bucket.first, bucket.last)},
                    {unit, after.between(bucket.first, bucket.last)}});
  }
  return rows;
}

ordered_json reach_at_least(const Frequencies& before, const Frequencies& after) {
  ordered_json rows = ordered_json::array();
  for (const std::uint64_t step : reach_steps(std::max(before.most(), after.most()))) {
    rows.push_back({{"impressions", step},
                    {"users_before", before.at_least(step)},
                    {"users", after.at_least(step)}});
  }
  return rows;
}

ordered_json name_json(const Simulation& simulation, const std::string& id) {
  std::string name = simulation.names.name(id);
  return name.empty() ? ordered_json(nullptr) : ordered_json(std::move(name));
}

ordered_json worth_json(const Simulation& simulation, std::uint64_t impressions) {
  if (!simulation.cpm) return nullptr;
  return *simulation.cpm * static_cast<double>(impressions) / 1000.0;
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
          {"time_zone", simulation.time_zone},
          {"made_at", to_ms(simulation.made_at)},
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
    if (campaigns.size() == kBusiestMax) break;
    campaigns.push_back({{"id", campaign.id},
                         {"name", name_json(simulation, campaign.id)},
                         {"advertiser", campaign.advertiser},
                         {"impressions", campaign.impressions},
                         {"shown", campaign.shown},
                         {"blocked", campaign.impressions - campaign.shown},
                         {"reach_before", campaign.reach_before},
                         {"reach", campaign.reach}});
  }
  ordered_json advertisers = ordered_json::array();
  for (const AdvertiserOutcome& advertiser : outcome.advertisers) {
    if (advertisers.size() == kBusiestMax) break;
    advertisers.push_back({{"id", advertiser.id},
                           {"name", name_json(simulation, advertiser.id)},
                           {"impressions", advertiser.impressions},
                           {"shown", advertiser.shown},
                           {"blocked", advertiser.impressions - advertiser.shown},
                           {"reach_before", advertiser.reach_before},
                           {"reach", advertiser.reach}});
  }
  ordered_json days = ordered_json::array();
  for (std::size_t i = 0; i < simulation.per_day.size(); ++i) {
    if (simulation.per_day[i] == 0) continue;
    days.push_back({{"day", day_text(simulation.first_day + static_cast<std::int64_t>(i))},
                    {"impressions", simulation.per_day[i]},
                    {"shown", outcome.shown_per_day[i]}});
  }
  ordered_json limit = nullptr;
  if (outcome.sweep_limit) limit = *outcome.sweep_limit;
  return {{"name", outcome.name},
          {"sweep_limit", limit},
          {"version", outcome.version},
          {"summary", headline(simulation, outcome)},
          {"impressions", simulation.impressions},
          {"shown", outcome.shown},
          {"blocked", outcome.blocked},
          {"blocked_share", share_of(outcome.blocked, simulation.impressions)},
          {"blocked_worth", worth_json(simulation, outcome.blocked)},
          {"shadow_blocked", outcome.shadow_blocked},
          {"follow_ups_blocked", outcome.follow_ups_blocked},
          {"reach_before", simulation.reach},
          {"reach", outcome.reach},
          {"average_per_user_before", share_of(simulation.impressions, simulation.reach)},
          {"average_per_user", share_of(outcome.shown, outcome.reach)},
          {"per_user", frequencies(simulation.per_user, outcome.per_user, "users")},
          {"per_user_and_campaign", frequencies(simulation.per_pair, outcome.per_pair, "pairs")},
          {"reach_at_least", reach_at_least(simulation.per_user, outcome.per_user)},
          {"rules", rules},
          {"advertisers", advertisers},
          {"days", days},
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
