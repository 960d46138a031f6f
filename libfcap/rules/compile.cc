#include "rules/compile.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "ledger/ids.h"
#include "rules/civil.h"

namespace fcap::rules {
namespace {

constexpr std::string_view kDefaultTarget = "*";

// A rule on its way into CompiledRules::rules, with what it is sorted by.
struct Placed {
  Scope scope = Scope::kUser;
  bool is_default = false;
  std::uint64_t target = 0;  // hash (campaign, creative) or index (advertiser, group)
  CompiledRule rule;

  // Scope, default or not, and target as one number, since most comparisons end there.
  [[nodiscard]] std::uint64_t order() const noexcept {
    constexpr unsigned kTargetBits = 48;
    return (static_cast<std::uint64_t>(scope) * 2 + (is_default ? 1 : 0)) << kTargetBits | target;
  }
};

class Compiler {
 public:
  Compiler(const SharedSpec& spec, std::chrono::milliseconds retention, Texts& mistakes)
      : spec_(spec), mistakes_(mistakes) {
    out_.retention_ms = retention.count();
    out_.zone_data_version = zone_data_version();
  }

  CompiledRules run() {
    place_rules();
    sort_rules();
    advertisers_with_defaults_ = has_default(Scope::kAdvertiser);
    groups_with_defaults_ = has_default(Scope::kGroup);
    size_tables();
    lay_out_targets();
    add_catalog();
    return std::move(out_);
  }

 private:
  void place_rules();
  void sort_rules();
  void size_tables();
  void lay_out_targets();
  void add_catalog();
  [[nodiscard]] bool is_looked_at(const Campaign& campaign) const;

  [[nodiscard]] bool has_default(Scope scope) const {
    return std::any_of(placed_.begin(), placed_.end(), [scope](const Placed& placed) {
      return placed.is_default && placed.scope == scope;
    });
  }

  std::uint32_t zone_index(const Rule& rule);
  std::uint32_t calendar_index(const Rule& rule);
  std::uint32_t window_index(const Rule& rule);
  std::uint64_t target_key(const Rule& rule);
  static std::uint32_t intern(std::string_view name,
                              std::unordered_map<std::string_view, std::uint32_t>& indices,
                              std::vector<std::string_view>& names);
  TargetRules summary(std::size_t begin, std::size_t end);
  TargetRules& destination(const Placed& placed);

  const SharedSpec& spec_;
  Texts& mistakes_;
  CompiledRules out_;
  std::vector<Placed> placed_;
  std::map<std::string, std::uint32_t, std::less<>> zones_;
  std::map<std::tuple<Window::Kind, std::int64_t, std::uint32_t>, std::uint32_t> windows_;
  std::map<std::tuple<std::uint32_t, CalendarUnit, std::uint8_t>, std::uint32_t> calendars_;
  std::unordered_map<std::string_view, std::uint32_t> advertisers_;
  std::unordered_map<std::string_view, std::uint32_t> groups_;
  bool advertisers_with_defaults_ = false;
  bool groups_with_defaults_ = false;
};

std::uint32_t Compiler::zone_index(const Rule& rule) {
  const std::string& name = rule.window.time_zone;
  if (const auto known = zones_.find(name); known != zones_.end()) {
    if (known->second == kNone) {
      mistakes_.add("rule \"" + rule.id + "\": time zone \"" + name + "\" is not known");
      return 0;
    }
    return known->second;
  }
  Result<Zone> zone = Zone::load(name);
  if (!zone.ok()) {
    zones_.emplace(name, kNone);
    mistakes_.add("rule \"" + rule.id + "\": " + zone.status().text());
    return 0;
  }
  const auto index = static_cast<std::uint32_t>(out_.zones.size());
  out_.zones.push_back(std::move(zone).value());
  zones_.emplace(name, index);
  return index;
}

std::uint32_t Compiler::calendar_index(const Rule& rule) {
  Calendar calendar{.zone = zone_index(rule), .unit = rule.window.unit, .week_start = 0};
  if (calendar.unit == CalendarUnit::kWeek) {
    calendar.week_start = static_cast<std::uint8_t>(rule.window.week_start.c_encoding());
  }
  const auto [known, is_new] =
      calendars_.try_emplace({calendar.zone, calendar.unit, calendar.week_start},
                             static_cast<std::uint32_t>(out_.calendars.size()));
  if (is_new) out_.calendars.push_back(calendar);
  return known->second;
}

std::uint32_t Compiler::window_index(const Rule& rule) {
  CompiledWindow window{.kind = rule.window.kind, .calendar = kNone, .length_ms = 0};
  switch (window.kind) {
    case Window::Kind::kSliding:
    case Window::Kind::kFixed:
      window.length_ms = rule.window.length.count();
      break;
    case Window::Kind::kLifetime:
      window.length_ms = out_.retention_ms;
      break;
    case Window::Kind::kCalendar:
      window.calendar = calendar_index(rule);
      break;
  }
  const auto [known, is_new] =
      windows_.try_emplace({window.kind, window.length_ms, window.calendar},
                           static_cast<std::uint32_t>(out_.windows.size()));
  if (is_new) out_.windows.push_back(window);
  return known->second;
}

std::uint32_t Compiler::intern(std::string_view name,
                               std::unordered_map<std::string_view, std::uint32_t>& indices,
                               std::vector<std::string_view>& names) {
  const auto [known, is_new] = indices.try_emplace(name, static_cast<std::uint32_t>(names.size()));
  if (is_new) names.push_back(name);
  return known->second;
}

std::uint64_t Compiler::target_key(const Rule& rule) {
  if (rule.target == kDefaultTarget) return 0;
  switch (rule.scope) {
    case Scope::kCampaign:
    case Scope::kCreative:
      return ledger::id_hash(rule.target);
    case Scope::kAdvertiser:
      return intern(rule.target, advertisers_, out_.advertiser_names);
    case Scope::kGroup:
      return intern(rule.target, groups_, out_.group_names);
    case Scope::kUser:
      break;
  }
  return 0;
}

void Compiler::place_rules() {
  placed_.reserve(spec_.rules.size());
  for (std::size_t i = 0; i < spec_.rules.size(); ++i) {
    const Rule& rule = spec_.rules[i];
    Placed placed;
    placed.scope = rule.scope;
    placed.is_default = rule.scope != Scope::kUser && rule.target == kDefaultTarget;
    placed.target = target_key(rule);
    CompiledRule& compiled = placed.rule;
    compiled.limit = rule.limit.value_or(std::numeric_limits<std::uint32_t>::max());
    compiled.unlimited = !rule.limit.has_value();
    compiled.window = window_index(rule);
    compiled.source = static_cast<std::uint32_t>(i);
    compiled.type = rule.event_type;
    compiled.shadow = rule.mode == Rule::Mode::kShadow;
    compiled.hard =
        !compiled.shadow && !compiled.unlimited && rule.enforcement == Rule::Enforcement::kHard;
    out_.any_hard = out_.any_hard || compiled.hard;
    if (rule.segment) {
      const auto next = static_cast<std::uint32_t>(out_.segments.size());
      compiled.segment = out_.segments.try_emplace(*rule.segment, next).first->second;
    }
    if (rule.start || rule.end) {
      compiled.life = static_cast<std::uint32_t>(out_.lives.size());
      RuleLife life;
      if (rule.start) life.start_ms = to_ms(*rule.start);
      if (rule.end) life.end_ms = to_ms(*rule.end);
      out_.lives.push_back(life);
    }
    placed_.push_back(placed);
  }
}

void Compiler::sort_rules() {
  const auto key = [](const Placed& placed) {
    const CompiledRule& rule = placed.rule;
    return std::tuple(rule.type, rule.shadow, rule.window, rule.segment == kNone, rule.unlimited,
                      rule.limit);
  };
  std::sort(placed_.begin(), placed_.end(), [&](const Placed& a, const Placed& b) {
    if (a.order() != b.order()) return a.order() < b.order();
    const auto key_a = key(a);
    const auto key_b = key(b);
    if (key_a != key_b) return key_a < key_b;
    return spec_.rules[a.rule.source].id < spec_.rules[b.rule.source].id;
  });
  out_.rules.reserve(placed_.size());
}

void Compiler::size_tables() {
  std::size_t campaigns = 0;
  std::size_t creatives = 0;
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    const Placed& placed = placed_[i];
    if (placed.is_default) continue;
    if (i > 0 && placed_[i - 1].scope == placed.scope && placed_[i - 1].target == placed.target) {
      continue;
    }
    if (placed.scope == Scope::kCampaign) ++campaigns;
    if (placed.scope == Scope::kCreative) ++creatives;
  }
  out_.campaigns.reset(campaigns);
  out_.creatives.reset(creatives);
  if (advertisers_with_defaults_ || groups_with_defaults_) {
    for (const Campaign& campaign : spec_.campaigns) {
      if (advertisers_with_defaults_ && !campaign.advertiser_id.empty()) {
        intern(campaign.advertiser_id, advertisers_, out_.advertiser_names);
      }
      if (!groups_with_defaults_) continue;
      for (const std::string& group : campaign.groups) intern(group, groups_, out_.group_names);
    }
  }
  out_.advertisers.resize(out_.advertiser_names.size());
  out_.groups.resize(out_.group_names.size());
}

TargetRules& Compiler::destination(const Placed& placed) {
  if (placed.is_default) return out_.defaults[static_cast<std::size_t>(placed.scope)];
  switch (placed.scope) {
    case Scope::kCampaign:
      return out_.campaigns[placed.target].rules;
    case Scope::kCreative:
      return out_.creatives[placed.target];
    case Scope::kAdvertiser:
      return out_.advertisers[placed.target];
    case Scope::kGroup:
      return out_.groups[placed.target];
    case Scope::kUser:
      break;
  }
  return out_.user;
}

TargetRules Compiler::summary(std::size_t begin, std::size_t end) {
  TargetRules target;
  target.begin = static_cast<std::uint32_t>(begin);
  target.count = static_cast<std::uint32_t>(end - begin);
  for (std::size_t i = begin; i < end; ++i) {
    const CompiledRule& rule = out_.rules[i];
    const bool always = rule.life == kNone;
    if (rule.segment != kNone || !always) target.plain = false;
    if (rule.segment == kNone && always) {
      target.always = static_cast<std::uint8_t>(target.always | rule.kind_bit());
    }
    const bool fixed = out_.windows[rule.window].kind == Window::Kind::kFixed;
    if (!rule.shadow && (!always || fixed)) target.settled = false;
    if (!rule.unlimited && rule.limit > 0) target.reads_history = true;
    if (rule.hard) target.hard = true;
  }
  return target;
}

void Compiler::lay_out_targets() {
  const auto same_target = [](const Placed& a, const Placed& b) {
    return a.scope == b.scope && a.is_default == b.is_default && a.target == b.target;
  };
  const auto same_key = [](const CompiledRule& a, const CompiledRule& b) {
    return a.type == b.type && a.shadow == b.shadow && a.window == b.window;
  };
  std::size_t begin = 0;
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    const bool opens_target = i == begin;
    placed_[i].rule.opens_key = opens_target || !same_key(placed_[i - 1].rule, placed_[i].rule);
    out_.rules.push_back(placed_[i].rule);
    if (i + 1 == placed_.size() || !same_target(placed_[i], placed_[i + 1])) {
      destination(placed_[i]) = summary(begin, i + 1);
      begin = i + 1;
    }
  }
  out_.any_reads_history =
      out_.user.reads_history ||
      std::any_of(std::begin(out_.defaults), std::end(out_.defaults),
                  [](const TargetRules& defaults) { return defaults.reads_history; });
}

bool Compiler::is_looked_at(const Campaign& campaign) const {
  return advertisers_.contains(campaign.advertiser_id) ||
         std::any_of(campaign.groups.begin(), campaign.groups.end(),
                     [this](const std::string& name) { return groups_.contains(name); });
}

void Compiler::add_catalog() {
  // Campaigns of advertisers and groups that no rule looks at are left out: nothing is gathered for
  // them. The table is as large as it has to be, since it is a good part of a large set's memory.
  if (advertisers_.empty() && groups_.empty()) return;
  std::size_t new_ones = 0;
  for (const Campaign& campaign : spec_.campaigns) {
    if (!is_looked_at(campaign)) continue;
    if (out_.campaigns.find(ledger::id_hash(campaign.id)) == nullptr) ++new_ones;
  }
  out_.campaigns.grow(new_ones);
  std::vector<std::uint32_t> groups;
  for (const Campaign& campaign : spec_.campaigns) {
    if (!is_looked_at(campaign)) continue;
    const auto advertiser = advertisers_.find(campaign.advertiser_id);
    groups.clear();
    for (const std::string& name : campaign.groups) {
      if (const auto known = groups_.find(name); known != groups_.end()) {
        groups.push_back(known->second);
      }
    }
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    CompiledCampaign& compiled = out_.campaigns[ledger::id_hash(campaign.id)];
    if (advertiser != advertisers_.end()) compiled.advertiser = advertiser->second;
    compiled.groups_begin = static_cast<std::uint32_t>(out_.group_members.size());
    compiled.groups_count = static_cast<std::uint32_t>(groups.size());
    out_.group_members.insert(out_.group_members.end(), groups.begin(), groups.end());
  }
}

}  // namespace

CompiledRules compile(const SharedSpec& spec, std::chrono::milliseconds retention,
                      Texts& mistakes) {
  return Compiler(spec, retention, mistakes).run();
}

}  // namespace fcap::rules
