#include "rules/check.h"

#include <algorithm>

#include "rules/fixed_window.h"
#include "rules/rule_set_access.h"

namespace fcap::rules {

void Membership::begin(const Evaluator::Question& question) {
  const CompiledRules& rules = RuleSetAccess::compiled(question.rules);
  if (rules.segments.empty()) {
    known_.clear();
    rules_serial_ = rules.serial;
    return;
  }
  stored_ = question.stored;
  user_id_ = question.user;
  looked_up_ = false;
  const std::uint64_t stored_serial = stored_ == nullptr ? 0 : stored_->serial();
  if (rules_serial_ != rules.serial || stored_serial_ != stored_serial) bind(rules, stored_);
  check_ += 2;
  if (check_ == 0) {
    std::fill(known_.begin(), known_.end(), 0);
    check_ = 2;
  }
  for (const std::string_view name : question.segments) {
    if (const auto known = rules.segments.find(name); known != rules.segments.end()) {
      known_[known->second] = check_ | 1U;
    }
  }
}

// Names are compared here, once after a swap, and not in a check.
void Membership::bind(const CompiledRules& rules, const SegmentSet* stored) {
  rules_serial_ = 0;  // should memory run out below, the next check must come here again
  known_.assign(rules.segments.size(), 0);
  check_ = 0;
  stored_index_.assign(rules.segments.size(), kNone);
  for (const auto& [name, segment] : rules.segments) {
    if (stored != nullptr) stored_index_[segment] = stored->index_of(name).value_or(kNone);
  }
  rules_serial_ = rules.serial;
  stored_serial_ = stored == nullptr ? 0 : stored->serial();
}

bool Membership::ask_stored(std::uint32_t segment) noexcept {
  const std::uint32_t index = stored_index_[segment];
  bool member = false;
  if (index != kNone) {
    if (!looked_up_) user_ = stored_->look_up(user_id_);
    looked_up_ = true;
    member = stored_->contains(index, user_);
  }
  known_[segment] = check_ | (member ? 1U : 0U);
  return member;
}

void Check::begin(const Evaluator::Question& question, std::span<const CandidateKey> candidates) {
  resolved_count_ = 0;
  rules_ = &RuleSetAccess::compiled(question.rules);
  sources_ = question.rules.rules().data();
  if (serial_ != rules_->serial) {
    periods_.assign(rules_->calendars.size(), CachedPeriod{});
    serial_ = rules_->serial;
  }
  now_ms_ = bounded_ms(question.now);
  // An empty std::optional compares less than any instant.
  const auto since = std::max(question.ledger.complete_since(), question.missing_before);
  trimmed_ = since && bounded_ms(*since) > now_ms_ - rules_->retention_ms + 1;
  complete_since_ms_ = trimmed_ ? bounded_ms(*since) : 0;
  whatever_is_confirmed_ = question.whatever_is_confirmed;

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
  return open_windows(times, timeline.reserved, fixed, at_ms);
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
  if (!trimmed_ || rule.unlimited || rule.limit == 0) return true;
  return counted_from(rules_->windows[rule.window], now_ms_) >= complete_since_ms_;
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

std::int64_t Check::replaced_at(const Target& target, const Applying& applying,
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

std::int64_t Check::clears_at(const Target& target, const Applying& applying,
                              const Timeline& timeline, std::int64_t at_ms) {
  std::int64_t clears_ms = count_clears_at(applying.rule, timeline, at_ms);
  if (applying.rule.life != kNone) {
    clears_ms = std::min(clears_ms, rules_->lives[applying.rule.life].end_ms);
  }
  return std::min(clears_ms, replaced_at(target, applying, at_ms));
}

}  // namespace fcap::rules
