#include <algorithm>

#include "rules/check.h"

namespace fcap::rules {
namespace {

// Each step passes a rule's start or end, or an entry's leaving of a window.
constexpr std::size_t kPassingStepsMax = std::size_t{1} << 16;

}  // namespace

// Visits the rules of one target that apply at an instant: of each key the segment rule with the
// smallest limit, or all general ones.
template <typename Visit>
void Check::visit_keys(std::span<const CompiledRule> rules, std::int64_t at_ms, Visit&& visit) {
  for (std::size_t begin = 0; begin < rules.size();) {
    const std::span<const CompiledRule> key = rules.subspan(begin, key_length(rules, begin));
    for (const CompiledRule& rule : key) {
      if (!applies(rule, at_ms)) continue;
      visit(rule, key);
      if (rule.segment != kNone) break;
    }
    begin += key.size();
  }
}

// The kinds (type and mode) for which a rule that names the target applies, so that defaults do
// not.
std::uint8_t Check::named_kinds(const TargetRules* named, std::int64_t at_ms) const noexcept {
  if (named == nullptr) return 0;
  std::uint8_t kinds = named->always;
  if (named->plain) return kinds;
  for (const CompiledRule& rule : rules_->rules_of(*named)) {
    if (applies(rule, at_ms)) kinds = static_cast<std::uint8_t>(kinds | rule.kind_bit());
  }
  return kinds;
}

template <typename Visit>
void Check::visit_applying(const Target& target, std::int64_t at_ms, Visit&& visit) {
  if (target.rules != nullptr) {
    const std::span<const CompiledRule> named = rules_->rules_of(*target.rules);
    if (target.rules->plain) {
      for (const CompiledRule& rule : named) visit(ApplyingRule{rule, {}, false});
    } else {
      visit_keys(named, at_ms, [&](const CompiledRule& rule, std::span<const CompiledRule> key) {
        visit(ApplyingRule{rule, key, false});
      });
    }
  }
  const TargetRules& defaults = rules_->defaults_of(target.scope);
  if (defaults.count == 0) return;
  const std::uint8_t named = named_kinds(target.rules, at_ms);
  visit_keys(rules_->rules_of(defaults), at_ms,
             [&](const CompiledRule& rule, std::span<const CompiledRule> key) {
               if ((rule.kind_bit() & named) == 0) visit(ApplyingRule{rule, key, true});
             });
}

void Check::judge_rule(const Target& target, const ApplyingRule& applying, std::int64_t at_ms,
                       TargetJudgement& judgement) {
  const CompiledRule& rule = applying.rule;
  if (rule.unlimited) return;
  const Timeline times = timeline(target, rule.type);
  if (!rule.shadow && !is_whole_ && !is_complete(rule)) judgement.complete = false;
  if (!blocks(rule, times, at_ms)) return;
  if (rule.shadow) {
    add_shadow(rule, judgement);
    return;
  }
  TargetJudgement obstacle;
  obstacle.rule = &rule;
  obstacle.clears_ms = clears_at(target, applying, times, at_ms);
  obstacle.count = count(rule, times, at_ms);
  obstacle.since_ms = counts_since(rule, times, at_ms);
  if (is_whole_ && only_grows(rule)) {
    obstacle.certain = times.reserved.empty()
                           ? CertainObstacle{&rule, obstacle.clears_ms, obstacle.count}
                           : certain_obstacle(target, applying, times, at_ms);
  }
  add(obstacle, judgement);
}

// Whether a rule that stands in the way goes on doing so when more is recorded. The window of a
// fixed one may turn out to have opened earlier; a lifetime's edge is the retention's.
bool Check::only_grows(const CompiledRule& rule) const noexcept {
  if (rule.limit == 0) return true;
  const Window::Kind kind = rules_->windows[rule.window].kind;
  return kind == Window::Kind::kSliding || kind == Window::Kind::kCalendar;
}

void Check::judge_target(const Target& target, std::int64_t at_ms, TargetJudgement& judgement) {
  visit_applying(target, at_ms, [&](const ApplyingRule& applying) {
    judge_rule(target, applying, at_ms, judgement);
  });
}

void Check::add_shadow(const CompiledRule& rule, TargetJudgement& judgement) const noexcept {
  if (judgement.shadow != nullptr && source(*judgement.shadow).id <= source(rule).id) return;
  judgement.shadow = &rule;
}

void Check::add(const TargetJudgement& part, TargetJudgement& whole) const noexcept {
  whole.complete = whole.complete && part.complete;
  if (part.shadow != nullptr) add_shadow(*part.shadow, whole);
  if (part.rule == nullptr) return;
  if (part.certain.rule != nullptr &&
      (whole.certain.rule == nullptr || part.certain.until_ms > whole.certain.until_ms)) {
    whole.certain = part.certain;
  }
  if (whole.rule != nullptr && part.clears_ms <= whole.clears_ms) {
    if (part.clears_ms < whole.clears_ms) return;
    // One default may stand in the way for several groups of a candidate: the largest count.
    const bool same = part.rule == whole.rule;
    if (same && part.count <= whole.count) return;
    if (!same && source(*part.rule).id >= source(*whole.rule).id) return;
  }
  whole.rule = part.rule;
  whole.clears_ms = part.clears_ms;
  whole.count = part.count;
  whole.since_ms = part.since_ms;
}

bool Check::is_settled(const Resolved& candidate) noexcept {
  bool settled = true;
  for_each_target(candidate, [&](const Target& target) {
    settled = settled && (target.rules == nullptr || target.rules->settled) &&
              rules_->defaults_of(target.scope).settled;
  });
  return settled;
}

// The first instant, `at_ms` or later, at which no enforced rule of a target stands in the way.
// Until the last obstacle of an instant clears the target cannot pass, so the search may go on
// from there; then another rule may have started, or a fixed window's chain have changed.
std::int64_t Check::find_passing(const Target& target, std::int64_t at_ms) {
  for (std::size_t step = 0; step < kPassingStepsMax && at_ms != kNever; ++step) {
    TargetJudgement judgement;
    judge_target(target, at_ms, judgement);
    if (judgement.rule == nullptr) return at_ms;
    at_ms = judgement.clears_ms;
  }
  return at_ms;
}

// The same, worked out once for all candidates that share the target. A thousand candidates would
// otherwise each follow the user's whole history.
std::int64_t Check::target_passes_at(const Target& target, std::int64_t at_ms) {
  const bool is_campaign = target.gathered == kNone;
  if (is_campaign && passing_campaign_ != target.campaign) {
    passing_campaign_ = target.campaign;
    campaign_passes_.clear();
  }
  const auto known = [&]() -> PassingSpans& {
    return is_campaign ? campaign_passes_ : history_.target(target.gathered).passes;
  };
  if (const auto passes_ms = known().passes_at(at_ms)) return *passes_ms;
  const std::int64_t passes_ms = find_passing(target, at_ms);
  known().add(at_ms, passes_ms);
  return passes_ms;
}

// The first instant, `at_ms` or later, at which no enforced rule of any target stands in the way.
std::int64_t Check::passes_at(const Resolved& candidate, std::int64_t at_ms) {
  for (std::size_t step = 0; step < kPassingStepsMax && at_ms != kNever; ++step) {
    const std::int64_t before_ms = at_ms;
    for_each_target(candidate, [&](const Target& target) {
      if (at_ms != kNever) at_ms = target_passes_at(target, at_ms);
    });
    if (at_ms == before_ms) return at_ms;
  }
  return at_ms;
}

// Whether it is seen at one look that no rule of the target stands in the way: all its rules apply,
// and no default does. False: it must be judged in full.
bool Check::is_plainly_clear(const Target& target) {
  if (rules_->defaults_of(target.scope).count > 0) return false;
  if (target.rules == nullptr) return true;
  if (!target.rules->plain) return false;
  for (const CompiledRule& rule : rules_->rules_of(*target.rules)) {
    if (blocks(rule, timeline(target, rule.type), now_ms_)) return false;
  }
  return true;
}

// Most candidates pass, and most of them by plain rules: they need no account of obstacles.
bool Check::passes_plainly(const Resolved& candidate) {
  if (!is_whole_) return false;
  bool clear = true;
  for_each_target(candidate, [&](const Target& target) {
    if (!clear) return;
    if (target.gathered == kNone) {
      clear = is_plainly_clear(target);
      return;
    }
    GatheredTarget& gathered = history_.target(target.gathered);
    if (!gathered.plainly_clear) gathered.plainly_clear = is_plainly_clear(target);
    clear = gathered.plainly_clear;
  });
  return clear;
}

// Whether a hard rule applies to a candidate.
bool Check::needs_reserve(const Resolved& candidate) {
  bool needs = false;
  for_each_target(candidate, [&](const Target& target) {
    const bool may =
        (target.rules != nullptr && target.rules->hard) || rules_->defaults_of(target.scope).hard;
    if (needs || !may) return;
    visit_applying(target, now_ms_,
                   [&](const ApplyingRule& applying) { needs = needs || applying.rule.hard; });
  });
  return needs;
}

void Check::judge(std::size_t index, Verdict& verdict) {
  Resolved& candidate = resolved_[index];
  verdict = Verdict{};
  if (rules_->any_hard) verdict.needs_reserve = needs_reserve(candidate);
  if (passes_plainly(candidate)) {
    verdict.eligible_at = instant_from_ms(now_ms_);
    return;
  }
  TargetJudgement judgement;
  for_each_target(candidate, [&](const Target& target) {
    if (target.gathered == kNone) {
      judge_target(target, now_ms_, judgement);
      return;
    }
    GatheredTarget& gathered = history_.target(target.gathered);
    if (!gathered.judged) {
      gathered.judgement = TargetJudgement{};
      judge_target(target, now_ms_, gathered.judgement);
      gathered.judged = true;
    }
    add(gathered.judgement, judgement);
  });
  candidate.certain = judgement.certain;
  verdict.complete = judgement.complete;
  candidate.shadow = judgement.shadow;
  verdict.shadow_capped = judgement.shadow != nullptr;
  if (judgement.rule == nullptr) {
    verdict.eligible_at = instant_from_ms(now_ms_);
    return;
  }
  verdict.allowed = false;
  verdict.reason = Reason::kCapped;
  verdict.rule_id = source(*judgement.rule).id;
  verdict.count = judgement.count;
  verdict.limit = judgement.rule->limit;
  const std::int64_t eligible_ms =
      is_settled(candidate) ? judgement.clears_ms : passes_at(candidate, judgement.clears_ms);
  if (eligible_ms != kNever) verdict.eligible_at = instant_from_ms(eligible_ms);
  verdict.counted_since = instant_from_ms(judgement.since_ms);
  // Confirmed reservations can only make an instant later, and a candidate that never passes has
  // none.
  if (verdict.eligible_at && history_.has_reserved()) {
    verdict.provisional = is_provisional(candidate);
  }
}

}  // namespace fcap::rules
