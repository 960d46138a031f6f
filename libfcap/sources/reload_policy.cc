#include "sources/reload_policy.h"

#include <algorithm>
#include <string_view>

namespace fcap::sources {
namespace {

bool shrunken(std::size_t last, std::size_t next, double share) {
  return static_cast<double>(next) < static_cast<double>(last) * share;
}

std::string fewer(std::size_t next, std::size_t last, std::string_view what) {
  return std::to_string(next) + " " + std::string(what) + " where the last good set has " +
         std::to_string(last);
}

// Whether somebody accepted, at the source, what came between two versions.
bool accepted_between(std::uint64_t last, std::uint64_t next, std::uint64_t accepted) {
  return accepted != 0 && (accepted == next || (last < accepted && accepted < next));
}

}  // namespace

ReloadDecision decide_reload(const std::optional<RuleSetSize>& last, const RuleSetSize& next,
                             const ReloadPolicy& policy) {
  if (!last) return {};
  std::string remark;
  if (last->rules > 0 && next.rules == 0) {
    remark = "it is empty: " + fewer(0, last->rules, "rules");
  } else if (shrunken(last->rules, next.rules, policy.shrink_refused_below)) {
    remark = "it has shrunk: " + fewer(next.rules, last->rules, "rules");
  } else if (last->campaigns >= kCatalogGuardedFrom &&
             (next.campaigns == 0 ||
              shrunken(last->campaigns, next.campaigns, policy.shrink_refused_below))) {
    remark = "its catalog has shrunk: " + fewer(next.campaigns, last->campaigns, "campaigns");
  }
  if (!remark.empty()) {
    if (policy.accept_any_shrink) return {true, remark + "; accepted by rules.accept_any_shrink"};
    if (accepted_between(last->version, next.version, policy.accepted_version)) {
      return {true, remark + "; accepted by fcap_accept_rules()"};
    }
    return {false, remark +
                       " (if that is meant, SELECT fcap_accept_rules() has every process take it; "
                       "rules.accept_any_shrink, this one)"};
  }
  if (next.version < last->version) {
    return {true, "its version went back from " + std::to_string(last->version) + " to " +
                      std::to_string(next.version) + ", as after a restored backup"};
  }
  return {};
}

ReloadDecision decide_segments(const SegmentSet* last, const SegmentSet& next,
                               const ReloadPolicy& policy) {
  if (last == nullptr) return {};
  std::string remark;
  const auto& names = last->names();
  for (std::uint32_t i = 0; i < names.size() && remark.empty(); ++i) {
    if (last->memory(i).members == 0 || next.index_of(names[i])) continue;
    remark = "segment \"" + names[i] + "\" has vanished, which had " +
             std::to_string(last->memory(i).members) + " members";
  }
  const std::uint64_t had = last->memory().members;
  const std::uint64_t has = next.memory().members;
  if (remark.empty() && had >= kMembersGuardedFrom &&
      (has == 0 || shrunken(had, has, policy.shrink_refused_below))) {
    remark = "it has shrunk: " + fewer(has, had, "members");
  }
  if (remark.empty()) return {};
  if (policy.accept_any_shrink) return {true, remark + "; accepted by rules.accept_any_shrink"};
  if (accepted_between(last->version(), next.version(), policy.accepted_version)) {
    return {true, remark + "; accepted by fcap_accept_segments()"};
  }
  return {false, remark +
                     " (empty a segment before it is removed; SELECT fcap_accept_segments() has "
                     "every process take the set, rules.accept_any_shrink has this one take any)"};
}

}  // namespace fcap::sources
