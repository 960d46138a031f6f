#include "cli/names.h"

#include <fmt/format.h>

#include "ledger/ids.h"

namespace fcap::cli {

Names::Names(const RuleSet& rules) {
  for (const Campaign& campaign : rules.campaigns()) learn(campaign.id, {});
  for (const Rule& rule : rules.rules()) {
    if (rule.target == "*") continue;
    if (rule.scope == Scope::kCampaign) learn(rule.target, {});
    if (rule.scope == Scope::kCreative) learn({}, rule.target);
  }
}

void Names::learn(const std::string& campaign, const std::string& creative) {
  if (!campaign.empty()) campaigns_.emplace(ledger::id_hash(campaign), campaign);
  if (!creative.empty()) creatives_.emplace(ledger::id_hash(creative), creative);
}

std::string Names::campaign(std::uint64_t hash) const {
  return find(campaigns_, hash);
}

std::string Names::creative(std::uint64_t hash) const {
  return find(creatives_, hash);
}

std::string Names::find(const Ids& ids, std::uint64_t hash) {
  const auto known = ids.find(hash);
  return known != ids.end() ? known->second : fmt::format("#{:012x}", hash);
}

}  // namespace fcap::cli
