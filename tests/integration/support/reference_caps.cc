#include "support/reference_caps.h"

#include <algorithm>

namespace fcap::testing {

void ReferenceCaps::add(const SeenEvent& event) {
  auto [at, added] = events_[event.user].try_emplace({event.campaign, event.id}, event.time);
  if (!added) at->second = std::max(at->second, event.time);
}

const ReferenceCaps::UserEvents& ReferenceCaps::events_of(const std::string& user) const {
  static const UserEvents none;
  const auto found = events_.find(user);
  return found == events_.end() ? none : found->second;
}

bool ReferenceCaps::applies(const Rule& rule, const std::string& campaign) const {
  switch (rule.scope) {
    case Scope::kCampaign:
      return rule.target == campaign;
    case Scope::kAdvertiser: {
      const auto found = advertiser_of_.find(campaign);
      return found != advertiser_of_.end() && found->second == rule.target;
    }
    case Scope::kUser:
      return true;
    default:
      return false;
  }
}

std::uint32_t ReferenceCaps::count(const Rule& rule, const std::string& user, Instant now) const {
  std::uint32_t count = 0;
  for (const auto& [identity, time] : events_of(user)) {
    if (!applies(rule, identity.first)) continue;
    if (now - rule.window.length < time && now - retention_ < time) ++count;
  }
  return count;
}

std::vector<Instant> ReferenceCaps::turning_points(const Rule& rule, const std::string& user,
                                                   Instant now) const {
  std::vector<Instant> points;
  for (const auto& [identity, time] : events_of(user)) {
    for (const Instant point : {time + rule.window.length, time + retention_}) {
      if (point > now) points.push_back(point);
    }
  }
  return points;
}

std::optional<Instant> ReferenceCaps::eligible_at(const std::vector<const Rule*>& rules,
                                                  const std::string& user, Instant now) const {
  std::vector<Instant> instants{now};
  for (const Rule* rule : rules) {
    const auto points = turning_points(*rule, user, now);
    instants.insert(instants.end(), points.begin(), points.end());
  }
  std::sort(instants.begin(), instants.end());
  for (const Instant instant : instants) {
    const bool passes = std::all_of(rules.begin(), rules.end(), [&](const Rule* rule) {
      return !rule->limit || count(*rule, user, instant) < *rule->limit;
    });
    if (passes) return instant;
  }
  return std::nullopt;
}

ReferenceVerdict ReferenceCaps::judge(const std::string& user, const std::string& campaign,
                                      Instant now) const {
  std::vector<const Rule*> applicable;
  for (const Rule& rule : rules_) {
    if (applies(rule, campaign)) applicable.push_back(&rule);
  }
  ReferenceVerdict verdict;
  verdict.eligible_at = eligible_at(applicable, user, now);
  const Rule* named = nullptr;
  std::optional<Instant> named_until;
  for (const Rule* rule : applicable) {
    if (!rule->limit || count(*rule, user, now) < *rule->limit) continue;
    const auto until = eligible_at({rule}, user, now);
    // The latest names the verdict; "never" is the latest of all, and ties go to the smallest id.
    const bool later = named == nullptr || (named_until && (!until || *until > *named_until));
    const bool tie = named != nullptr && until == named_until && rule->id < named->id;
    if (later || tie) {
      named = rule;
      named_until = until;
    }
  }
  if (named == nullptr) return verdict;
  verdict.allowed = false;
  verdict.rule_id = named->id;
  verdict.count = count(*named, user, now);
  verdict.limit = *named->limit;
  return verdict;
}

}  // namespace fcap::testing
