#include "rules/keep_needed.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rules/compiled_rules.h"
#include "rules/history.h"
#include "rules/rule_set_access.h"

namespace fcap::rules {
namespace {

// The largest limit of each type's rules; -1: no rule counts it. Rules that are not in force now
// or not for this user count too: they may be tomorrow, and the record must still answer them.
struct LargestLimits {
  std::int64_t of_type[kEventTypeCount] = {-1, -1, -1, -1};

  void add(std::span<const CompiledRule> rules) {
    for (const CompiledRule& rule : rules) {
      if (rule.unlimited) continue;
      std::int64_t& largest = of_type[static_cast<std::size_t>(rule.type)];
      largest = std::max(largest, std::int64_t{rule.limit});
    }
  }
};

// Marks the newest limit + 1 entries of one target and type after another.
class Marker {
 public:
  Marker(const CompiledRules& rules, const ledger::Ledger& ledger, std::vector<bool>& keep)
      : rules_(rules), ledger_(ledger), keep_(keep) {}

  void run() {
    if (rules_.user.count > 0) collect(Scope::kUser, 0, &rules_.user);
    for (const ledger::Run& run : ledger_.runs()) add_run(run);
    for (auto& [key, target] : targets_) mark(target);
  }

 private:
  struct NeededTarget {
    LargestLimits limits;
    std::vector<std::uint32_t> entries[kEventTypeCount];
  };

  NeededTarget& collect(Scope scope, std::uint64_t id, const TargetRules* named) {
    const std::uint64_t key = (static_cast<std::uint64_t>(scope) << 48) | id;
    const auto [found, is_new] = targets_.try_emplace(key);
    if (is_new) {
      if (named != nullptr) found->second.limits.add(rules_.rules_of(*named));
      found->second.limits.add(rules_.rules_of(rules_.defaults_of(scope)));
    }
    return found->second;
  }

  void add_entries(NeededTarget& target, const ledger::Run& run) {
    auto& entries = target.entries[static_cast<std::size_t>(run.type)];
    for (std::uint32_t i = run.begin; i < run.end; ++i) entries.push_back(i);
  }

  void add_run(const ledger::Run& run) {
    const CompiledCampaign* campaign = rules_.campaigns.find(run.campaign);
    add_entries(
        collect(Scope::kCampaign, run.campaign, campaign != nullptr ? &campaign->rules : nullptr),
        run);
    if (rules_.user.count > 0) add_entries(collect(Scope::kUser, 0, &rules_.user), run);
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      const std::uint64_t creative = ledger_.creatives()[i];
      if (creative == 0) continue;
      collect(Scope::kCreative, creative, rules_.creatives.find(creative))
          .entries[static_cast<std::size_t>(run.type)]
          .push_back(i);
    }
    if (campaign == nullptr) return;
    if (campaign->advertiser != kNone) {
      add_entries(collect(Scope::kAdvertiser, campaign->advertiser,
                          &rules_.advertisers[campaign->advertiser]),
                  run);
    }
    for (const std::uint32_t group : rules_.groups_of(*campaign)) {
      add_entries(collect(Scope::kGroup, group, &rules_.groups[group]), run);
    }
  }

  void mark(NeededTarget& target) {
    for (std::size_t type = 0; type < kEventTypeCount; ++type) {
      std::vector<std::uint32_t>& entries = target.entries[type];
      const std::int64_t needed = target.limits.of_type[type] + 1;
      const std::size_t kept =
          std::min(entries.size(), static_cast<std::size_t>(std::max<std::int64_t>(needed, 0)));
      if (kept < entries.size()) {
        const std::span<const Instant> times = ledger_.times();
        // Equal times are told apart by the larger index: any fixed choice will do, but it must be
        // one.
        std::nth_element(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(kept),
                         entries.end(), [&](std::uint32_t a, std::uint32_t b) {
                           return times[a] != times[b] ? times[a] > times[b] : a > b;
                         });
      }
      for (std::size_t i = 0; i < kept; ++i) keep_[entries[i]] = true;
    }
  }

  const CompiledRules& rules_;
  const ledger::Ledger& ledger_;
  std::vector<bool>& keep_;
  std::unordered_map<std::uint64_t, NeededTarget> targets_;
};

}  // namespace

KeepNeeded::KeepNeeded(std::shared_ptr<const RuleSet> rules) : rules_(std::move(rules)) {}

void KeepNeeded::mark_needed(const ledger::Ledger& ledger, std::vector<bool>& keep) const {
  if (ledger.empty() || rules_ == nullptr) return;
  Marker(RuleSetAccess::compiled(*rules_), ledger, keep).run();
}

}  // namespace fcap::rules
