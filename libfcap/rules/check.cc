#include "rules/check.h"

#include <algorithm>
#include <functional>

#include "rules/fixed_window.h"
#include "rules/rule_set_access.h"

namespace fcap::rules {

void Check::begin(const Evaluator::EvaluatorInput& question,
                  std::span<const CandidateKey> candidates) {
  resolved_count_ = 0;
  rules_ = &RuleSetAccess::compiled(question.rules);
  sources_ = question.rules.rules().data();
  if (serial_ != rules_->serial) {
    periods_.assign(rules_->calendars.size(), CachedPeriod{});
    serial_ = rules_->serial;
  }
  now_ms_ = bounded_ms(question.now);
  completeness_ = question.completeness.trimmed(question.ledger.complete_since());
  is_whole_ = completeness_.covers(instant_from_ms(now_ms_ - rules_->retention_ms + 1));
  any_confirmation_order_ = question.any_confirmation_order;

  membership_.begin(question);
  history_.begin(*rules_, question.ledger);
  group_targets_.clear();
  passing_campaign_ = 0;
  campaign_passes_.clear();
  user_ = rules_->user.count > 0 ? history_.ask(Scope::kUser, 0, &rules_->user) : kNone;
  if (resolved_.size() < candidates.size()) resolved_.resize(candidates.size());
  for (const CandidateKey& key : candidates) rules_->campaigns.prefetch(key.campaign);
  for (std::size_t i = 0; i < candidates.size(); ++i) resolve(candidates[i], resolved_[i]);
  history_.gather(candidates.size(), now_ms_);
  resolved_count_ = candidates.size();
}

void Check::resolve(const CandidateKey& key, Resolved& resolved) {
  resolved = Resolved{.key = key, .campaign = rules_->campaigns.find(key.campaign)};
  if (key.creative != 0) {
    const TargetRules* named = rules_->creatives.find(key.creative);
    if (named != nullptr || rules_->defaults_of(Scope::kCreative).count > 0) {
      resolved.creative = history_.ask(Scope::kCreative, key.creative, named);
    }
  }
  if (resolved.campaign == nullptr) return;
  __builtin_prefetch(rules_->rules.data() + resolved.campaign->rules.begin);
  const CompiledCampaign& campaign = *resolved.campaign;
  if (campaign.advertiser != kNone) {
    resolved.advertiser = history_.ask(Scope::kAdvertiser, campaign.advertiser,
                                       &rules_->advertisers[campaign.advertiser]);
  }
  if (campaign.groups_count == 0) return;
  resolved.groups_begin = static_cast<std::uint32_t>(group_targets_.size());
  for (const std::uint32_t group : rules_->groups_of(campaign)) {
    group_targets_.push_back(history_.ask(Scope::kGroup, group, &rules_->groups[group]));
  }
  resolved.groups_end = static_cast<std::uint32_t>(group_targets_.size());
}

std::string_view Check::name_of(const Target& target) noexcept {
  const GatheredTarget& gathered = history_.target(target.gathered);
  if (target.scope == Scope::kAdvertiser) return rules_->advertiser_names[gathered.id()];
  return rules_->group_names[gathered.id()];
}

CalendarPeriod Check::period_at(const CompiledWindow& window, std::int64_t at_ms) noexcept {
  CachedPeriod& cached = periods_[window.calendar];
  if (!cached.known || !cached.period.holds(at_ms)) {
    cached = {rules_->period(window, at_ms), true};
  }
  return cached.period;
}

OpenWindows Check::open_at(const CompiledWindow& window, const Timeline& timeline,
                           std::int64_t at_ms) {
  const FixedWindow fixed = fixed_window(window);
  const std::span<const Instant> times = history_.sorted(timeline);
  if (timeline.reserved.empty()) return open_windows(times, fixed, at_ms);
  return open_windows(times, timeline.reserved, fixed, at_ms, chain_);
}

std::uint32_t Check::count(const CompiledRule& rule, const Timeline& timeline, std::int64_t at_ms) {
  const CompiledWindow& window = rules_->windows[rule.window];
  if (window.kind == Window::Kind::kFixed) return open_at(window, timeline, at_ms).count;
  const std::uint32_t confirmed = history_.count_since(timeline, counted_from(window, at_ms));
  if (timeline.reserved.empty()) return confirmed;
  return confirmed + count_reserved(window, timeline, at_ms);
}

std::int64_t Check::counts_since(const CompiledRule& rule, const Timeline& timeline,
                                 std::int64_t at_ms) {
  const CompiledWindow& window = rules_->windows[rule.window];
  if (window.kind != Window::Kind::kFixed) return counted_from(window, at_ms);
  const OpenWindows open = open_at(window, timeline, at_ms);
  return open.count > 0 ? open.opened_ms : at_ms;
}

bool Check::is_complete(const CompiledRule& rule) noexcept {
  if (is_whole_ || rule.unlimited || rule.limit == 0) return true;
  return completeness_.covers(instant_from_ms(counted_from(rules_->windows[rule.window], now_ms_)));
}

std::int64_t Check::count_clears_at(const CompiledRule& rule, const Timeline& timeline,
                                    std::int64_t at_ms) {
  if (rule.limit == 0) return kNever;
  if (!timeline.reserved.empty()) return reserved_clears_at(rule, timeline, at_ms);
  const CompiledWindow& window = rules_->windows[rule.window];
  if (window.kind == Window::Kind::kFixed) {
    return fixed_clears_at(history_.sorted(timeline), fixed_window(window), rule.limit, at_ms);
  }
  // The rule passes as soon as the last of the newest `limit` entries no longer counts.
  return leaves_at(window, history_.kth_newest_ms(timeline, rule.limit), at_ms);
}

// When a sliding or calendar window, or a lifetime, no longer counts an event.
std::int64_t Check::leaves_at(const CompiledWindow& window, std::int64_t time_ms,
                              std::int64_t at_ms) noexcept {
  if (window.kind != Window::Kind::kCalendar) return time_ms + window.length_ms;
  const std::int64_t next_ms = period_at(window, at_ms).holds(time_ms)
                                   ? period_at(window, at_ms).next_ms
                                   : rules_->period(window, time_ms).next_ms;
  return std::min(next_ms, time_ms + rules_->retention_ms);
}

std::int64_t Check::replaced_at(const Target& target, const ApplyingRule& applying,
                                std::int64_t at_ms) const noexcept {
  std::int64_t earliest_ms = kNever;
  const auto consider = [&](const CompiledRule& other) {
    if (other.life == kNone || !is_for_user(other)) return;
    const RuleLife& life = rules_->lives[other.life];
    // One that is in force already would have replaced the rule; one that is never in force cannot.
    if (life.start_ms > at_ms && life.start_ms < life.end_ms) {
      earliest_ms = std::min(earliest_ms, life.start_ms);
    }
  };
  for (const CompiledRule& other : applying.key) {
    // Segments' rules come first, the smallest limit in front: those before this one replace it.
    if (&other == &applying.rule || other.segment == kNone) break;
    consider(other);
  }
  if (applying.is_default && target.rules != nullptr) {
    for (const CompiledRule& named : rules_->rules_of(*target.rules)) {
      if (named.kind_bit() == applying.rule.kind_bit()) consider(named);
    }
  }
  return earliest_ms;
}

std::int64_t Check::clears_at(const Target& target, const ApplyingRule& applying,
                              const Timeline& timeline, std::int64_t at_ms) {
  std::int64_t clears_ms = count_clears_at(applying.rule, timeline, at_ms);
  if (applying.rule.life != kNone) {
    clears_ms = std::min(clears_ms, rules_->lives[applying.rule.life].end_ms);
  }
  return std::min(clears_ms, replaced_at(target, applying, at_ms));
}

// What follows counts reservations beside events; it is asked only where a target has any.

// Counts the live reservations in a sliding or calendar window, or in a lifetime.
std::uint32_t Check::count_reserved(const CompiledWindow& window, const Timeline& timeline,
                                    std::int64_t at_ms) noexcept {
  const std::int64_t from_ms = counted_from(window, at_ms);
  return static_cast<std::uint32_t>(std::count_if(
      timeline.reserved.begin(), timeline.reserved.end(),
      [&](const Reserved& each) { return each.time_ms >= from_ms && each.expires_ms > at_ms; }));
}

// When fewer than the limit are left, if nothing is confirmed. That is when the limit-th last of
// all leaves. Events leave in the order of their times, reservations in an order of their own.
std::int64_t Check::reserved_clears_at(const CompiledRule& rule, const Timeline& timeline,
                                       std::int64_t at_ms) {
  const CompiledWindow& window = rules_->windows[rule.window];
  const std::span<const Instant> times = history_.sorted(timeline);
  if (window.kind == Window::Kind::kFixed) {
    return fixed_clears_at(times, timeline.reserved, fixed_window(window), rule.limit, at_ms,
                           chain_);
  }
  leaving_.clear();
  for (const Reserved& each : timeline.reserved) {
    leaving_.push_back(std::min(each.expires_ms, leaves_at(window, each.time_ms, at_ms)));
  }
  std::sort(leaving_.begin(), leaving_.end(), std::greater<>());
  // If `of_them` of the last `limit` are reservations and the others events, the first of these to
  // leave is known from the two orders. The right number is the one that gives the latest instant.
  const std::size_t limit = rule.limit;
  std::int64_t clears_ms = at_ms;
  const std::size_t fewest = limit > times.size() ? limit - times.size() : 0;
  for (std::size_t of_them = fewest; of_them <= std::min(limit, leaving_.size()); ++of_them) {
    std::int64_t last_ms = kNever;
    if (of_them > 0) last_ms = leaving_[of_them - 1];
    if (of_them < limit) {
      const std::int64_t time_ms = bounded_ms(times[times.size() - (limit - of_them)]);
      last_ms = std::min(last_ms, leaves_at(window, time_ms, at_ms));
    }
    clears_ms = std::max(clears_ms, last_ms);
  }
  return clears_ms;
}

// Finds what stands in the way whatever else is recorded. Only events count here, because a
// reservation may be released.
CertainObstacle Check::certain_obstacle(const Target& target, const ApplyingRule& applying,
                                        const Timeline& timeline, std::int64_t at_ms) {
  const CompiledRule& rule = applying.rule;
  const Timeline confirmed = timeline.confirmed();
  if (!blocks(rule, confirmed, at_ms)) return {};
  return {.rule = &rule,
          .until_ms = clears_at(target, applying, confirmed, at_ms),
          .count = count(rule, confirmed, at_ms)};
}

// Whether a rule of a target could stand in the way with the help of a reservation, now or once it
// is in force.
bool Check::may_count_reserved(const Target& target, const TargetRules& rules) {
  const std::span<const CompiledRule> all = rules_->rules_of(rules);
  return std::any_of(all.begin(), all.end(), [&](const CompiledRule& rule) {
    if (rule.shadow || rule.unlimited || rule.limit == 0 || !is_for_user(rule)) return false;
    if (rule.life != kNone && rules_->lives[rule.life].end_ms <= now_ms_) return false;
    const Timeline times = timeline(target, rule.type);
    return !times.reserved.empty() && times.count + times.reserved.size() >= rule.limit;
  });
}

// Whether a candidate's eligible_at could be later if reservations are confirmed.
bool Check::is_provisional(const Resolved& candidate) {
  bool provisional = false;
  for_each_target(candidate, [&](const Target& target) {
    provisional = provisional ||
                  (target.rules != nullptr && may_count_reserved(target, *target.rules)) ||
                  may_count_reserved(target, rules_->defaults_of(target.scope));
  });
  return provisional;
}

}  // namespace fcap::rules
