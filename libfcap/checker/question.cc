#include "checker/question.h"

#include <algorithm>

#include "ledger/ids.h"
#include "rules/compiled_rules.h"

namespace fcap::checker {
namespace {

bool counts(const rules::CompiledRules& rules, const rules::TargetRules* target) noexcept {
  if (target == nullptr) return false;
  const auto of_target = rules.rules_of(*target);
  return std::any_of(of_target.begin(), of_target.end(), [](const rules::CompiledRule& rule) {
    return !rule.unlimited && rule.limit > 0;
  });
}

bool counts(const rules::CompiledRules& rules, const rules::CandidateKey& key) noexcept {
  if (key.creative != 0 && counts(rules, rules.creatives.find(key.creative))) return true;
  const rules::CompiledCampaign* campaign = rules.campaigns.find(key.campaign);
  if (campaign == nullptr) return false;
  if (counts(rules, &campaign->rules)) return true;
  if (campaign->advertiser != rules::kNone &&
      counts(rules, &rules.advertisers[campaign->advertiser])) {
    return true;
  }
  const auto groups = rules.groups_of(*campaign);
  return std::any_of(groups.begin(), groups.end(),
                     [&](std::uint32_t group) { return counts(rules, &rules.groups[group]); });
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
  if (question.candidates.empty()) return false;
  const rules::CompiledRules& rules = question.held.rules->compiled();
  // A user rule or a default may apply to anything.
  if (counts(rules, &rules.user)) return true;
  for (const rules::TargetRules& defaults : rules.defaults) {
    if (counts(rules, &defaults)) return true;
  }
  return std::any_of(
      question.candidates.begin(), question.candidates.end(),
      [&](const rules::CandidateKey& key) { return !is_invalid(key) && counts(rules, key); });
}

}  // namespace fcap::checker
