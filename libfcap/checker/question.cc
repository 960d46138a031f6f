#include "checker/question.h"

#include <algorithm>

#include "ledger/ids.h"
#include "rules/compiled_rules.h"
#include "rules/rule_set_access.h"

namespace fcap::checker {
namespace {

bool reads_history(const rules::CompiledRules& rules, const rules::CandidateKey& key) noexcept {
  if (key.creative != 0) {
    const rules::TargetRules* const creative = rules.creatives.find(key.creative);
    if (creative != nullptr && creative->reads_history) return true;
  }
  const rules::CompiledCampaign* const campaign = rules.campaigns.find(key.campaign);
  if (campaign == nullptr) return false;
  if (campaign->rules.reads_history) return true;
  if (campaign->advertiser != rules::kNone &&
      rules.advertisers[campaign->advertiser].reads_history) {
    return true;
  }
  const auto groups = rules.groups_of(*campaign);
  return std::any_of(groups.begin(), groups.end(),
                     [&](std::uint32_t group) { return rules.groups[group].reads_history; });
}

}  // namespace

void hash_candidates(std::span<const Candidate> candidates,
                     std::vector<rules::CandidateKey>& keys) {
  keys.clear();
  keys.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    const bool valid = !candidate.campaign.empty() &&
                       candidate.campaign.size() <= ledger::kIdBytesMax &&
                       candidate.creative.size() <= ledger::kIdBytesMax;
    keys.push_back(valid ? rules::candidate_key(candidate) : kInvalidCandidate);
  }
}

bool needs_history(const Question& question) noexcept {
  const rules::CompiledRules& rules = rules::RuleSetAccess::compiled(*question.held.rules);
  if (rules.any_reads_history) return !question.candidates.empty();
  return std::any_of(question.candidates.begin(), question.candidates.end(),
                     [&](const rules::CandidateKey& key) {
                       return !is_invalid(key) && reads_history(rules, key);
                     });
}

}  // namespace fcap::checker
