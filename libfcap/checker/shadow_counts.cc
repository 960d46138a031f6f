#include "checker/shadow_counts.h"

namespace fcap::checker {

void ShadowCounts::add(std::string_view rule_id) noexcept {
  CountsStripe& part = parts_[current_stripe() % parts_.size()];
  const std::lock_guard lock(part.mutex);
  try {
    auto found = part.counts.find(rule_id);
    if (found == part.counts.end()) {
      const bool full = part.counts.size() >= kRulesMax;
      found = part.counts.try_emplace(full ? std::string() : std::string(rule_id), 0).first;
    }
    ++found->second;
  } catch (...) {  // a number that is too low is better than a check that fails
  }
}

std::vector<ShadowCount> ShadowCounts::counts() const {
  std::map<std::string, std::uint64_t, std::less<>> sums;
  for (const CountsStripe& part : parts_) {
    const std::lock_guard lock(part.mutex);
    for (const auto& [id, count] : part.counts) {
      const bool full = sums.size() >= kRulesMax && !sums.contains(id);
      sums[full ? std::string() : id] += count;
    }
  }
  std::vector<ShadowCount> counts;
  counts.reserve(sums.size());
  for (const auto& [id, count] : sums) counts.push_back({id, count});
  return counts;
}

}  // namespace fcap::checker
