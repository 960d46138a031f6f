// What a simulation found, as a table for other programs.
#include <fmt/format.h>

#include "cli/simulate/simulation.h"

namespace fcap::cli {
namespace {

// In quotes where it has to be. A leading sign of a formula is left: the ids are data, and other
// programs must find them as they are.
std::string field(const std::string& text) {
  if (text.find_first_of(",;\"\r\n\t") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted + "\"";
}

}  // namespace

std::string to_csv(const Simulation& simulation) {
  std::string csv =
      "rule_set,campaign_id,advertiser_id,impressions,shown,blocked,users_before,users_reached,"
      "campaign_name,blocked_worth\r\n";
  for (const SimulationOutcome& outcome : simulation.outcomes) {
    for (const CampaignOutcome& campaign : outcome.campaigns) {
      const std::uint64_t blocked = campaign.impressions - campaign.shown;
      csv += fmt::format(
          "{},{},{},{},{},{},{},{},{},{}\r\n", field(outcome.name), field(campaign.id),
          field(campaign.advertiser), campaign.impressions, campaign.shown, blocked,
          campaign.reach_before, campaign.reach, field(simulation.names.name(campaign.id)),
          simulation.cpm
              ? fmt::format("{:.2f}", *simulation.cpm * static_cast<double>(blocked) / 1000.0)
              : "");
    }
  }
  return csv;
}

}  // namespace fcap::cli
