// The part of Check that counts reservations beside events; asked only where a target has any.
#include <algorithm>
#include <functional>

#include "rules/check.h"

namespace fcap::rules {

// In a sliding or calendar window, or a lifetime.
std::uint32_t Check::count_reserved(const CompiledWindow& window, const Timeline& timeline,
                                    std::int64_t at_ms) noexcept {
  const std::int64_t from_ms = counted_from(window, at_ms);
  return static_cast<std::uint32_t>(std::count_if(
      timeline.reserved.begin(), timeline.reserved.end(),
      [&](const Reserved& each) { return each.time_ms >= from_ms && each.expires_ms > at_ms; }));
}

// When fewer than the limit are left, if nothing is confirmed. Events leave in the order of their
// times, reservations in an order of their own.
std::int64_t Check::reserved_clears_at(const CompiledRule& rule, const Timeline& timeline,
                                       std::int64_t at_ms) {
  const CompiledWindow& window = rules_->windows[rule.window];
  const std::span<const Instant> times = history_.sorted(timeline);
  if (window.kind == Window::Kind::kFixed) {
    return fixed_clears_at(times, timeline.reserved, fixed_window(window), rule.limit, at_ms);
  }
  leaving_.clear();
  for (const Reserved& each : timeline.reserved) {
    leaving_.push_back(std::min(each.expires_ms, leaves_at(window, each.time_ms, at_ms)));
  }
  std::sort(leaving_.begin(), leaving_.end(), std::greater<>());
  // The instant at which the limit-th last of all leaves: of the last `limit`, some number are
  // reservations, and that number is the one that makes the instant latest.
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

// What stands whatever else is recorded: a reservation may be released, so events alone.
CertainObstacle Check::certain_obstacle(const Target& target, const Applying& applying,
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
