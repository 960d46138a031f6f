#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rules/compiled_rules.h"
#include "rules/evaluate.h"
#include "rules/fixed_window.h"
#include "rules/history.h"
#include "rules/membership.h"

namespace fcap::rules {

/// One target of one candidate: its rules, those of "*", and where its history is.
struct Target {
  Scope scope = Scope::kUser;
  const TargetRules* rules = nullptr;  ///< null: no rule names it
  std::uint64_t campaign = 0;          ///< campaign scope
  std::uint32_t first_run = 0;         ///< campaign scope
  std::uint32_t gathered = kNone;      ///< other scopes: index into the History
};

/// A rule in force that applies to the user, and the rules of its key.
struct ApplyingRule {
  const CompiledRule& rule;
  std::span<const CompiledRule> key;
  bool is_default = false;
};

/// The state of one check: the question, and what has been worked out so far.
class Check {
 public:
  /// A candidate, with the targets that it has besides its campaign.
  struct Resolved {
    CandidateKey key;
    const CompiledCampaign* campaign = nullptr;  ///< null: neither catalog nor rules know it
    std::uint32_t advertiser = kNone;            ///< these are indices into the History
    std::uint32_t creative = kNone;
    std::uint32_t groups_begin = 0;  ///< into group_targets_
    std::uint32_t groups_end = 0;
    CertainObstacle certain = {};          ///< what judge() has found
    const CompiledRule* shadow = nullptr;  ///< likewise
  };

  /// Throws std::bad_alloc, as judge() does. Then begin() must be called before anything else.
  void begin(const Evaluator::EvaluatorInput& question, std::span<const CandidateKey> candidates);
  /// How many candidates the check was begun with; 0 when begin() threw.
  [[nodiscard]] std::size_t candidates() const noexcept { return resolved_count_; }
  [[nodiscard]] const Resolved& candidate(std::size_t index) const noexcept {
    return resolved_[index];
  }

  /// The verdict, every field of it.
  void judge(std::size_t index, Verdict& verdict);

  /// Calls visit(const Target&) for each target of a candidate that has rules.
  template <typename Visit>
  void for_each_target(const Resolved& candidate, Visit&& visit);

  [[nodiscard]] const CompiledRules& rules() const noexcept { return *rules_; }
  [[nodiscard]] std::int64_t now_ms() const noexcept { return now_ms_; }
  [[nodiscard]] const Rule& source(const CompiledRule& rule) const noexcept {
    return *sources_[rule.source];
  }

  // --- What explain looks at.

  /// Whether a rule is in force and for this user.
  [[nodiscard]] bool applies(const CompiledRule& rule, std::int64_t at_ms) const noexcept {
    return in_force(rule, at_ms) && is_for_user(rule);
  }
  /// How many rules the key has that begins at `begin`.
  [[nodiscard]] static std::size_t key_length(std::span<const CompiledRule> rules,
                                              std::size_t begin) noexcept {
    std::size_t end = begin + 1;
    while (end < rules.size() && !rules[end].opens_key) ++end;
    return end - begin;
  }
  /// The name of an advertiser or group.
  [[nodiscard]] std::string_view name_of(const Target& target) noexcept;
  /// What the target's rules of a type count: events, and reservations live at the check's `now`.
  [[nodiscard]] Timeline timeline(const Target& target, EventType type) const noexcept;
  [[nodiscard]] std::uint32_t count(const CompiledRule& rule, const Timeline& timeline,
                                    std::int64_t at_ms);
  /// The earliest instant that a rule's window counts from.
  [[nodiscard]] std::int64_t counted_from(const CompiledWindow& window,
                                          std::int64_t at_ms) noexcept;
  /// The instant since which entries count for a rule; of a fixed window that is not open, `at_ms`.
  [[nodiscard]] std::int64_t counts_since(const CompiledRule& rule, const Timeline& timeline,
                                          std::int64_t at_ms);
  [[nodiscard]] OpenWindows open_at(const CompiledWindow& window, const Timeline& timeline,
                                    std::int64_t at_ms);
  [[nodiscard]] CalendarPeriod period_at(const CompiledWindow& window, std::int64_t at_ms) noexcept;
  [[nodiscard]] bool blocks(const CompiledRule& rule, const Timeline& timeline, std::int64_t at_ms);
  /// When a rule that blocks no longer stands in the way.
  [[nodiscard]] std::int64_t clears_at(const Target& target, const ApplyingRule& applying,
                                       const Timeline& timeline, std::int64_t at_ms);
  [[nodiscard]] bool is_complete(const CompiledRule& rule) noexcept;

 private:
  struct CachedPeriod {
    CalendarPeriod period;
    bool known = false;
  };

  [[nodiscard]] FixedWindow fixed_window(const CompiledWindow& window) const noexcept {
    return {window.length_ms, rules_->retention_ms, any_confirmation_order_};
  }
  [[nodiscard]] bool in_force(const CompiledRule& rule, std::int64_t at_ms) const noexcept;
  [[nodiscard]] bool is_for_user(const CompiledRule& rule) const noexcept;
  void resolve(const CandidateKey& key, Resolved& resolved);
  template <typename Visit>
  void visit_keys(std::span<const CompiledRule> rules, std::int64_t at_ms, Visit&& visit);
  template <typename Visit>
  void visit_applying(const Target& target, std::int64_t at_ms, Visit&& visit);
  [[nodiscard]] bool is_plainly_clear(const Target& target);
  [[nodiscard]] bool passes_plainly(const Resolved& candidate);
  void judge_rule(const Target& target, const ApplyingRule& applying, std::int64_t at_ms,
                  TargetJudgement& judgement);
  void judge_target(const Target& target, std::int64_t at_ms, TargetJudgement& judgement);
  [[nodiscard]] bool only_grows(const CompiledRule& rule) const noexcept;
  void add(const TargetJudgement& part, TargetJudgement& whole) const noexcept;
  void add_shadow(const CompiledRule& rule, TargetJudgement& judgement) const noexcept;
  [[nodiscard]] std::uint8_t named_kinds(const TargetRules* named,
                                         std::int64_t at_ms) const noexcept;
  [[nodiscard]] std::uint32_t count_reserved(const CompiledWindow& window, const Timeline& timeline,
                                             std::int64_t at_ms) noexcept;
  [[nodiscard]] std::int64_t leaves_at(const CompiledWindow& window, std::int64_t time_ms,
                                       std::int64_t at_ms) noexcept;
  [[nodiscard]] std::int64_t reserved_clears_at(const CompiledRule& rule, const Timeline& timeline,
                                                std::int64_t at_ms);
  [[nodiscard]] CertainObstacle certain_obstacle(const Target& target, const ApplyingRule& applying,
                                                 const Timeline& timeline, std::int64_t at_ms);
  [[nodiscard]] bool may_count_reserved(const Target& target, const TargetRules& rules);
  [[nodiscard]] bool needs_reserve(const Resolved& candidate);
  [[nodiscard]] bool is_provisional(const Resolved& candidate);
  [[nodiscard]] std::int64_t count_clears_at(const CompiledRule& rule, const Timeline& timeline,
                                             std::int64_t at_ms);
  [[nodiscard]] std::int64_t replaced_at(const Target& target, const ApplyingRule& applying,
                                         std::int64_t at_ms) const noexcept;
  [[nodiscard]] bool is_settled(const Resolved& candidate) noexcept;
  [[nodiscard]] std::int64_t find_passing(const Target& target, std::int64_t at_ms);
  [[nodiscard]] std::int64_t target_passes_at(const Target& target, std::int64_t at_ms);
  [[nodiscard]] std::int64_t passes_at(const Resolved& candidate, std::int64_t at_ms);

  const CompiledRules* rules_ = nullptr;
  const Rule* const* sources_ = nullptr;
  std::uint64_t serial_ = 0;
  std::int64_t now_ms_ = 0;
  Completeness completeness_;
  bool is_whole_ = true;                 ///< no entry within reach is missing
  bool any_confirmation_order_ = false;  ///< EvaluatorInput::any_confirmation_order
  std::uint32_t user_ = kNone;
  mutable Membership membership_;  ///< remembers what it has been asked
  History history_;
  std::vector<Resolved> resolved_;
  std::size_t resolved_count_ = 0;
  std::vector<std::uint32_t> group_targets_;
  std::vector<CachedPeriod> periods_;
  std::vector<std::int64_t> leaving_;  ///< when reservations leave a window
  WindowChain chain_;
  /// What target_passes_at() found for the campaign that it was asked about last.
  std::uint64_t passing_campaign_ = 0;
  PassingSpans campaign_passes_;
};

/// The verdict with every rule behind it, for the one candidate that a check was begun with.
CandidateExplanation explain_check(Check& check, const Candidate& candidate);

inline bool Check::in_force(const CompiledRule& rule, std::int64_t at_ms) const noexcept {
  if (rule.life == kNone) return true;
  const RuleLife& life = rules_->lives[rule.life];
  return life.start_ms <= at_ms && at_ms < life.end_ms;
}

inline bool Check::is_for_user(const CompiledRule& rule) const noexcept {
  return rule.segment == kNone || membership_.is_member(rule.segment);
}

inline std::int64_t Check::counted_from(const CompiledWindow& window, std::int64_t at_ms) noexcept {
  const std::int64_t reach_ms = at_ms - rules_->retention_ms + 1;
  switch (window.kind) {
    case Window::Kind::kSliding:
      return at_ms - window.length_ms + 1;
    case Window::Kind::kCalendar:
      return std::max(reach_ms, period_at(window, at_ms).begin_ms);
    case Window::Kind::kFixed:
    case Window::Kind::kLifetime:
      break;
  }
  return reach_ms;
}

inline Timeline Check::timeline(const Target& target, EventType type) const noexcept {
  const bool is_campaign = target.gathered == kNone;
  Timeline timeline = is_campaign
                          ? history_.timeline_of_campaign(target.campaign, target.first_run, type)
                          : history_.timeline_of_target(target.gathered, type);
  if (history_.has_reserved()) [[unlikely]] {
    const std::uint64_t key = is_campaign ? target.campaign : history_.target(target.gathered).key;
    if (history_.may_be_reserved(key)) timeline.reserved = history_.reserved(key, type);
  }
  return timeline;
}

inline bool Check::blocks(const CompiledRule& rule, const Timeline& timeline, std::int64_t at_ms) {
  if (rule.unlimited) return false;
  if (rule.limit == 0) return true;
  if (timeline.count + timeline.reserved.size() < rule.limit) return false;
  const CompiledWindow& window = rules_->windows[rule.window];
  if (window.kind == Window::Kind::kFixed || !timeline.reserved.empty()) {
    return count(rule, timeline, at_ms) >= rule.limit;
  }
  return history_.at_least(timeline, rule.limit, counted_from(window, at_ms));
}

template <typename Visit>
void Check::for_each_target(const Resolved& candidate, Visit&& visit) {
  const TargetRules* own = candidate.campaign != nullptr ? &candidate.campaign->rules : nullptr;
  if ((own != nullptr && own->count > 0) || rules_->defaults_of(Scope::kCampaign).count > 0) {
    visit(Target{.scope = Scope::kCampaign,
                 .rules = own,
                 .campaign = candidate.key.campaign,
                 .first_run = history_.first_run(candidate.key.campaign)});
  }
  const auto visit_gathered = [&](std::uint32_t index) {
    const GatheredTarget& gathered = history_.target(index);
    visit(Target{.scope = gathered.scope, .rules = gathered.rules, .gathered = index});
  };
  if (candidate.creative != kNone) visit_gathered(candidate.creative);
  if (candidate.advertiser != kNone) visit_gathered(candidate.advertiser);
  for (std::uint32_t i = candidate.groups_begin; i < candidate.groups_end; ++i) {
    visit_gathered(group_targets_[i]);
  }
  if (user_ != kNone) visit_gathered(user_);
}

}  // namespace fcap::rules
