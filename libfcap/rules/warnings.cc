#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "rules/compile.h"

namespace fcap::rules {
namespace {

// Whether every event that `narrow` counts is counted by `wide` too, at any instant.
bool covers(const CompiledRules& compiled, std::uint32_t wide_index, std::uint32_t narrow_index) {
  if (wide_index == narrow_index) return true;
  const CompiledWindow& wide = compiled.windows[wide_index];
  const CompiledWindow& narrow = compiled.windows[narrow_index];
  switch (wide.kind) {
    case Window::Kind::kLifetime:
      return true;
    case Window::Kind::kFixed:
      return false;
    case Window::Kind::kSliding:
      if (narrow.kind != Window::Kind::kCalendar) return wide.length_ms >= narrow.length_ms;
      return wide.length_ms >= longest_period_ms(compiled.calendars[narrow.calendar].unit);
    case Window::Kind::kCalendar:
      break;
  }
  if (narrow.kind != Window::Kind::kCalendar) return false;
  const Calendar& long_one = compiled.calendars[wide.calendar];
  const Calendar& short_one = compiled.calendars[narrow.calendar];
  const bool nested = short_one.unit < long_one.unit && short_one.unit != CalendarUnit::kWeek;
  return long_one.zone == short_one.zone && nested;
}

// Looks for rules that cannot make a difference. Only rules that hold always and for everybody are
// compared: of the others it is often the point that they differ for a time or for some.
class Warner {
 public:
  Warner(const SharedSpec& spec, const CompiledRules& compiled)
      : spec_(spec), compiled_(compiled) {}

  void run(Texts& warnings);

 private:
  using Rules = std::span<const CompiledRule>;
  enum class Kind : std::uint8_t { kNeverInForce, kExemptsNothing, kNoCampaigns, kRedundant };
  struct RuleFinding {
    std::uint32_t rule = 0;
    std::uint32_t other = kNone;
    Kind kind = Kind::kRedundant;
  };

  void check_counts();
  void check_each_rule();
  void check_exemptions(const TargetRules& target, Scope scope, bool is_default);
  void check_targets();
  void compare(Rules rules, Rules tighter);
  [[nodiscard]] bool always_caps(const CompiledRule& rule) const {
    return rule.life == kNone && rule.segment == kNone && !rule.unlimited && !rule.shadow;
  }
  // Whether `tighter` stands in the way whenever `rule` does.
  [[nodiscard]] bool makes_redundant(const CompiledRule& tighter, const CompiledRule& rule) const;
  [[nodiscard]] std::string text(const RuleFinding& finding) const;
  void find(const CompiledRule& rule, Kind kind, std::uint32_t other = kNone) {
    findings_.push_back({rule.source, other, kind});
  }

  const SharedSpec& spec_;
  const CompiledRules& compiled_;
  std::vector<RuleFinding> findings_;
  std::vector<std::string> crowds_;
};

bool Warner::makes_redundant(const CompiledRule& tighter, const CompiledRule& rule) const {
  if (tighter.source == rule.source || tighter.type != rule.type) return false;
  if (!always_caps(tighter) || tighter.limit > rule.limit) return false;
  // If its key has rules of segments, which come first, one of them may replace it for members.
  const CompiledRule* first = &tighter;
  while (!first->opens_key) --first;
  if (first->segment != kNone) return false;
  if (!covers(compiled_, tighter.window, rule.window)) return false;
  const bool equal = tighter.limit == rule.limit && covers(compiled_, rule.window, tighter.window);
  return !equal || spec_.rules[tighter.source].id < spec_.rules[rule.source].id ||
         spec_.rules[tighter.source].scope != spec_.rules[rule.source].scope;
}

void Warner::compare(Rules rules, Rules tighter) {
  // Enough to find the usual mistakes, and never a product of two large numbers.
  constexpr std::size_t kComparedMax = 64;
  for (const CompiledRule& rule : rules) {
    if (!always_caps(rule)) continue;
    for (const CompiledRule& other : tighter.first(std::min(tighter.size(), kComparedMax))) {
      if (!makes_redundant(other, rule)) continue;
      find(rule, Kind::kRedundant, other.source);
      break;
    }
  }
}

// A check looks at each rule of a target, for about 10 ns.
void Warner::check_counts() {
  constexpr std::size_t kRulesMax = 1000;
  // In the order of Scope.
  static constexpr const char* kWords[kScopeCount] = {"campaign", "creative", "advertiser", "group",
                                                      "user"};
  const auto check = [this](const TargetRules& target, bool is_default) {
    const Rules rules = compiled_.rules_of(target);
    if (rules.size() <= kRulesMax) return;
    const Rule& first = spec_.rules[rules.front().source];
    const std::string scope = kWords[static_cast<std::size_t>(first.scope)];
    std::string text = scope + " \"" + first.target + "\" has ";
    if (is_default) text = "the defaults for " + scope + "s have ";
    if (first.scope == Scope::kUser) text = "the user scope has ";
    crowds_.push_back(text + std::to_string(rules.size()) +
                      " rules: a check looks at each of them, and so takes longer");
  };
  for (const auto& slot : compiled_.campaigns.slots()) {
    if (slot.hash != 0) check(slot.value.rules, false);
  }
  for (const auto& slot : compiled_.creatives.slots()) {
    if (slot.hash != 0) check(slot.value, false);
  }
  for (const TargetRules& target : compiled_.advertisers) check(target, false);
  for (const TargetRules& target : compiled_.groups) check(target, false);
  check(compiled_.user, false);
  for (const TargetRules& target : compiled_.defaults) check(target, true);
}

void Warner::check_each_rule() {
  for (const CompiledRule& rule : compiled_.rules) {
    if (rule.life == kNone) continue;
    const RuleLife& life = compiled_.lives[rule.life];
    if (life.start_ms >= life.end_ms) find(rule, Kind::kNeverInForce);
  }
}

void Warner::check_exemptions(const TargetRules& target, Scope scope, bool is_default) {
  const Rules rules = compiled_.rules_of(target);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!rules[i].unlimited) continue;
    const bool shares_key =
        !rules[i].opens_key || (i + 1 < rules.size() && !rules[i + 1].opens_key);
    bool acts = rules[i].segment != kNone && shares_key;
    if (!is_default) {
      for (const CompiledRule& general : compiled_.rules_of(compiled_.defaults_of(scope))) {
        acts = acts || general.kind_bit() == rules[i].kind_bit();
      }
    }
    if (!acts) find(rules[i], Kind::kExemptsNothing);
  }
}

void Warner::check_targets() {
  const Rules user = compiled_.rules_of(compiled_.user);
  std::vector<bool> advertiser_used(compiled_.advertisers.size());
  std::vector<bool> group_used(compiled_.groups.size());
  for (const auto& slot : compiled_.campaigns.slots()) {
    if (slot.hash == 0) continue;
    const CompiledCampaign& campaign = slot.value;
    const Rules own = compiled_.rules_of(campaign.rules);
    check_exemptions(campaign.rules, Scope::kCampaign, false);
    compare(own, own);
    compare(own, user);
    if (campaign.advertiser != kNone) {
      advertiser_used[campaign.advertiser] = true;
      compare(own, compiled_.rules_of(compiled_.advertisers[campaign.advertiser]));
    }
    for (const std::uint32_t group : compiled_.groups_of(campaign)) {
      group_used[group] = true;
      compare(own, compiled_.rules_of(compiled_.groups[group]));
    }
  }
  const auto check_shared = [&](const TargetRules& target, Scope scope) {
    const Rules rules = compiled_.rules_of(target);
    check_exemptions(target, scope, false);
    compare(rules, rules);
    if (scope != Scope::kUser) compare(rules, user);
  };
  for (const auto& slot : compiled_.creatives.slots()) {
    if (slot.hash != 0) check_shared(slot.value, Scope::kCreative);
  }
  const auto check_catalog = [&](const std::vector<TargetRules>& targets,
                                 const std::vector<bool>& used, Scope scope) {
    for (std::size_t i = 0; i < targets.size(); ++i) {
      check_shared(targets[i], scope);
      if (used[i]) continue;
      for (const CompiledRule& rule : compiled_.rules_of(targets[i])) {
        find(rule, Kind::kNoCampaigns);
      }
    }
  };
  check_catalog(compiled_.advertisers, advertiser_used, Scope::kAdvertiser);
  check_catalog(compiled_.groups, group_used, Scope::kGroup);
  check_shared(compiled_.user, Scope::kUser);
  for (std::size_t scope = 0; scope < kScopeCount; ++scope) {
    const TargetRules& defaults = compiled_.defaults[scope];
    check_exemptions(defaults, static_cast<Scope>(scope), true);
    compare(compiled_.rules_of(defaults), compiled_.rules_of(defaults));
    compare(compiled_.rules_of(defaults), user);
  }
}

std::string Warner::text(const RuleFinding& finding) const {
  const std::string rule = "rule \"" + spec_.rules[finding.rule].id + "\" can never act: ";
  switch (finding.kind) {
    case Kind::kNeverInForce:
      return rule + "it ends before it starts";
    case Kind::kExemptsNothing:
      return rule + "it has no limit, and no other rule or default is there for it to replace";
    case Kind::kNoCampaigns:
      return rule + "no campaign of the catalog belongs to \"" + spec_.rules[finding.rule].target +
             "\"";
    case Kind::kRedundant:
      break;
  }
  return rule + "whenever it stands in the way, rule \"" + spec_.rules[finding.other].id +
         "\" does too";
}

void Warner::run(Texts& warnings) {
  check_counts();
  // First, because only the first warnings are logged, and so many rules may cause many.
  for (std::string& crowd : crowds_) warnings.add(std::move(crowd));
  check_each_rule();
  check_targets();
  const auto key = [](const RuleFinding& finding) {
    return std::tuple(finding.rule, finding.kind, finding.other);
  };
  std::sort(findings_.begin(), findings_.end(),
            [&](const RuleFinding& a, const RuleFinding& b) { return key(a) < key(b); });
  std::uint32_t last = kNone;
  for (const RuleFinding& finding : findings_) {
    // One reason why a rule never acts is enough.
    if (finding.rule == last) continue;
    last = finding.rule;
    warnings.add(text(finding));
  }
}

}  // namespace

void find_warnings(const SharedSpec& spec, const CompiledRules& compiled, Texts& warnings) {
  Warner(spec, compiled).run(warnings);
}

}  // namespace fcap::rules
