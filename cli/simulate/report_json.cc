// What a simulation found, as JSON: for programs, and for the page, whose script draws it.
#include <algorithm>
#include <filesystem>
#include <ostream>

#include <nlohmann/json.hpp>

#include <fcap/version.h>

#include "cli/simulate/page.h"
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
  return {{"summary", log_sentence(simulation)},
          {"sources", simulation.sources},
          {"impressions", simulation.impressions},
          {"other_events", simulation.other_events},
          {"users", simulation.reach},
          {"pairs", simulation.pairs},
          {"campaigns", simulation.campaigns},
          {"first_at", to_ms(simulation.first_at)},
          {"last_at", to_ms(simulation.last_at)},
          {"time_zone", simulation.time_zone},
          {"made_at", to_ms(simulation.made_at)},
          {"fcap_version", FCAP_VERSION},
          {"cpm", simulation.cpm ? ordered_json(*simulation.cpm) : ordered_json(nullptr)},
          {"repeated", simulation.repeated},
          {"without_user", simulation.without_user},
          {"rejected", simulation.rejections.count},
          {"rejections", rejections}};
}

ordered_json outcome_json(const Simulation& simulation, const SimulationOutcome& outcome) {
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
          {"pairs", outcome.pairs},
          {"per_user", frequencies(simulation.per_user, outcome.per_user, "users")},
          {"per_user_and_campaign", frequencies(simulation.per_pair, outcome.per_pair, "pairs")},
          {"reach_at_least", reach_at_least(simulation.per_user, outcome.per_user)},
          {"rules", rules},
          {"advertisers", advertisers},
          {"days", days},
          {"campaigns", campaigns},
          {"warnings", outcome.warnings}};
}

ordered_json report(const Simulation& simulation) {
  ordered_json json;
  json["log"] = log_json(simulation);
  json["rule_sets"] = ordered_json::array();
  for (const SimulationOutcome& outcome : simulation.outcomes) {
    json["rule_sets"].push_back(outcome_json(simulation, outcome));
  }
  return json;
}

// Ids and names may be any bytes; JSON that is not UTF-8 could not be read.
std::string text_of(const ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

// The report as the page needs it: as much of it as a browser shows with ease, and how much that
// leaves out. Directories, and lines that could not be read, are no business of those who are shown
// the page.
ordered_json page_report(const Simulation& simulation) {
  ordered_json json = report(simulation);
  json["log"].erase("rejections");
  for (ordered_json& source : json["log"]["sources"]) {
    source = std::filesystem::path(source.get<std::string>()).filename().string();
  }
  for (std::size_t i = 0; i < simulation.outcomes.size(); ++i) {
    const SimulationOutcome& outcome = simulation.outcomes[i];
    ordered_json& set = json["rule_sets"][i];
    if (ordered_json& rules = set["rules"]; rules.size() > kBusiestMax) {
      rules.erase(rules.begin() + kBusiestMax, rules.end());
    }
    set["rule_count"] = outcome.rules.size();
    set["blocking_rule_count"] =
        std::count_if(outcome.rules.begin(), outcome.rules.end(),
                      [](const RuleCost& rule) { return rule.blocked > 0; });
    set["campaign_count"] = outcome.campaigns.size();
    set["advertiser_count"] = outcome.advertisers.size();
  }
  return json;
}

}  // namespace

void print_json(const Simulation& simulation, std::ostream& out) {
  out << text_of(report(simulation), 2) << "\n";
}

std::string to_html(const Simulation& simulation) {
  constexpr std::string_view kPlace = "\"the report\"";
  std::string html(kPage);
  std::string text;
  // Strangers choose ids and names. Only in strings does JSON have a "<"; without one, nothing in
  // it can end the element that it stands in ("</script") or begin a comment ("<!--").
  for (const char byte : text_of(page_report(simulation), -1)) {
    if (byte == '<') {
      text += "\\u003c";
    } else {
      text += byte;
    }
  }
  return html.replace(html.find(kPlace), kPlace.size(), text);
}

}  // namespace fcap::cli
