#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "rules/check.h"

namespace fcap::rules {
namespace {

// Collects the accounts of one candidate's rules. Reads the state that the check has worked out;
// unlike the verdict's path it may allocate.
class Explainer {
 public:
  Explainer(Check& check, const Candidate& candidate) : check_(check), candidate_(candidate) {}

  void explain(const Check::Resolved& resolved, CandidateExplanation& out) {
    check_.for_each_target(resolved, [&](const Target& target) { explain_target(target, out); });
  }

 private:
  using Rules = std::span<const CompiledRule>;

  void explain_target(const Target& target, CandidateExplanation& out);
  void explain_keys(const Target& target, Rules rules, bool defaults, CandidateExplanation& out);
  RuleAccount account(const Target& target, const ApplyingRule& applying, bool replaced);
  void add_bounds(const CompiledRule& rule, const Timeline& timeline, RuleAccount& account);
  [[nodiscard]] std::string target_name(const Target& target) const;
  [[nodiscard]] const CompiledRule* naming_rule(const Target& target,
                                                const CompiledRule& rule) const;
  [[nodiscard]] const CompiledRule* winner(Rules key) const;

  Check& check_;
  const Candidate& candidate_;
};

std::string Explainer::target_name(const Target& target) const {
  switch (target.scope) {
    case Scope::kCampaign:
      return std::string(candidate_.campaign);
    case Scope::kCreative:
      return std::string(candidate_.creative);
    case Scope::kAdvertiser:
    case Scope::kGroup:
      return std::string(check_.name_of(target));
    case Scope::kUser:
      break;
  }
  return {};
}

// The rule of a key that replaces the others for this user; null: none does.
const CompiledRule* Explainer::winner(Rules key) const {
  for (const CompiledRule& rule : key) {
    if (rule.segment == kNone) break;
    if (check_.applies(rule, check_.now_ms())) return &rule;
  }
  return nullptr;
}

// What puts a default aside for a target: of several, the one with the smallest id that is not
// replaced itself.
const CompiledRule* Explainer::naming_rule(const Target& target, const CompiledRule& rule) const {
  if (target.rules == nullptr) return nullptr;
  const CompiledRule* smallest = nullptr;
  const Rules named = check_.rules().rules_of(*target.rules);
  const CompiledRule* replacing = nullptr;
  for (std::size_t i = 0; i < named.size(); ++i) {
    if (named[i].opens_key) replacing = winner(named.subspan(i, check_.key_length(named, i)));
    if (named[i].kind_bit() != rule.kind_bit()) continue;
    if (!check_.applies(named[i], check_.now_ms())) continue;
    if (replacing != nullptr && replacing != &named[i]) continue;
    if (smallest == nullptr || check_.source(named[i]).id < check_.source(*smallest).id) {
      smallest = &named[i];
    }
  }
  return smallest;
}

void Explainer::explain_target(const Target& target, CandidateExplanation& out) {
  const CompiledRules& rules = check_.rules();
  if (target.rules != nullptr) explain_keys(target, rules.rules_of(*target.rules), false, out);
  explain_keys(target, rules.rules_of(rules.defaults_of(target.scope)), true, out);
}

void Explainer::explain_keys(const Target& target, Rules rules, bool defaults,
                             CandidateExplanation& out) {
  for (std::size_t begin = 0; begin < rules.size();) {
    const std::size_t length = check_.key_length(rules, begin);
    const Rules key = rules.subspan(begin, length);
    begin += length;
    const CompiledRule* segment_rule = winner(key);
    for (const CompiledRule& rule : key) {
      if (!check_.applies(rule, check_.now_ms())) continue;
      const CompiledRule* replacing = defaults ? naming_rule(target, rule) : nullptr;
      if (replacing == nullptr && segment_rule != &rule) replacing = segment_rule;
      RuleAccount entry = account(target, ApplyingRule{rule, key, defaults}, replacing != nullptr);
      if (replacing == nullptr) {
        out.applicable.push_back(std::move(entry));
      } else {
        entry.replaced_by = check_.source(*replacing).id;
        out.replaced.push_back(std::move(entry));
      }
    }
  }
}

void Explainer::add_bounds(const CompiledRule& rule, const Timeline& timeline,
                           RuleAccount& account) {
  const CompiledWindow& window = check_.rules().windows[rule.window];
  const std::int64_t now_ms = check_.now_ms();
  account.counted_from = instant_from_ms(check_.counts_since(rule, timeline, now_ms));
  if (window.kind == Window::Kind::kCalendar) {
    account.counted_until = instant_from_ms(check_.period_at(window, now_ms).next_ms);
  } else if (window.kind == Window::Kind::kFixed) {
    const OpenWindows open = check_.open_at(window, timeline, now_ms);
    if (open.count > 0) account.counted_until = instant_from_ms(open.last_closes_ms);
  }
}

RuleAccount Explainer::account(const Target& target, const ApplyingRule& applying, bool replaced) {
  const CompiledRule& rule = applying.rule;
  const std::int64_t now_ms = check_.now_ms();
  const Timeline timeline = check_.timeline(target, rule.type);
  RuleAccount account;
  account.rule = &check_.source(rule);
  account.target = target_name(target);
  account.count = check_.count(rule, timeline, now_ms);
  if (const auto limit = account.rule->limit)
    account.left = *limit - std::min(*limit, account.count);
  if (!timeline.reserved.empty()) {
    account.reserved = account.count - check_.count(rule, timeline.confirmed(), now_ms);
  }
  account.complete = check_.is_complete(rule);
  add_bounds(rule, timeline, account);
  account.stands_in_way = !replaced && check_.blocks(rule, timeline, now_ms);
  account.eligible_at = instant_from_ms(now_ms);
  if (account.stands_in_way) {
    const std::int64_t clears_ms = check_.clears_at(target, applying, timeline, now_ms);
    account.eligible_at.reset();
    if (clears_ms != kNever) account.eligible_at = instant_from_ms(clears_ms);
  }
  return account;
}

}  // namespace

CandidateExplanation explain_check(Check& check, const Candidate& candidate) {
  CandidateExplanation explanation{.campaign = std::string(candidate.campaign),
                                   .creative = std::string(candidate.creative)};
  check.judge(0, explanation.verdict);
  Explainer(check, candidate).explain(check.candidate(0), explanation);
  const auto by_id = [](const RuleAccount& a, const RuleAccount& b) {
    return a.rule->id != b.rule->id ? a.rule->id < b.rule->id : a.target < b.target;
  };
  std::sort(explanation.applicable.begin(), explanation.applicable.end(), by_id);
  std::sort(explanation.replaced.begin(), explanation.replaced.end(), by_id);
  return explanation;
}

}  // namespace fcap::rules
