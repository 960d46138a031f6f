#include "unit/rule_text/random_specs.h"

#include <array>

#include "base/time_text.h"

namespace fcap::rule_text {

std::string RandomSpecs::id() {
  static constexpr std::array<std::string_view, 12> kParts{
      "c", "42", "*", "\"", "\\", "/", "\n", "\t", "é", "漢", "😀", std::string_view("\0", 1)};
  std::string id;
  const std::uint64_t parts = chance(50) ? 60 : 1 + below(6);
  for (std::uint64_t i = 0; i < parts; ++i) id += kParts[below(kParts.size())];
  return id;
}

Instant RandomSpecs::instant() {
  static const Instant first = *base::parse_instant("0000-01-01T00:00:00Z");
  static const Instant last = *base::parse_instant("9999-12-31T23:59:59.999Z");
  const auto range = static_cast<std::uint64_t>((last - first).count());
  std::chrono::milliseconds since{static_cast<std::int64_t>(below(range + 1))};
  if (chance(2)) since = std::chrono::floor<std::chrono::seconds>(since);
  return first + since;
}

Window RandomSpecs::window() {
  Window window;
  window.kind = static_cast<Window::Kind>(below(4));
  switch (window.kind) {
    case Window::Kind::kSliding:
    case Window::Kind::kFixed: {
      static constexpr std::array<std::int64_t, 6> kUnits{1,         1000,       60'000,
                                                          3'600'000, 86'400'000, 7};
      window.length = std::chrono::milliseconds{kUnits[below(kUnits.size())] *
                                                static_cast<std::int64_t>(1 + below(1'000'000))};
      break;
    }
    case Window::Kind::kCalendar:
      window.unit = static_cast<CalendarUnit>(below(4));
      window.time_zone = chance(2) ? "UTC" : "Pacific/Apia";
      if (window.unit == CalendarUnit::kWeek) {
        window.week_start = std::chrono::weekday{static_cast<unsigned>(below(7))};
      }
      break;
    case Window::Kind::kLifetime:
      break;
  }
  return window;
}

Rule RandomSpecs::rule() {
  Rule rule;
  rule.id = id();
  rule.scope = static_cast<Scope>(below(5));
  if (rule.scope != Scope::kUser) rule.target = chance(5) ? "*" : id();
  rule.event_type = static_cast<EventType>(below(4));
  if (!chance(5)) rule.limit = static_cast<std::uint32_t>(below(chance(10) ? 1ULL << 32 : 6));
  rule.window = window();
  if (chance(3)) rule.segment = id();
  if (chance(3)) rule.start = instant();
  if (chance(3)) rule.end = instant();
  rule.mode = static_cast<Rule::Mode>(below(2));
  rule.enforcement = static_cast<Rule::Enforcement>(below(2));
  return rule;
}

Campaign RandomSpecs::campaign() {
  Campaign campaign;
  campaign.id = id();
  if (!chance(4)) campaign.advertiser_id = id();
  for (std::uint64_t i = below(4); i > 0; --i) campaign.groups.push_back(id());
  campaign.deleted = chance(4);
  return campaign;
}

RuleSetSpec RandomSpecs::spec() {
  RuleSetSpec spec;
  spec.version = chance(4) ? ~std::uint64_t{0} - below(3) : below(1000);
  for (std::uint64_t i = below(8); i > 0; --i) spec.rules.push_back(rule());
  for (std::uint64_t i = below(8); i > 0; --i) spec.campaigns.push_back(campaign());
  return spec;
}

namespace {

bool same_window(const Window& left, const Window& right) {
  if (left.kind != right.kind) return false;
  switch (left.kind) {
    case Window::Kind::kSliding:
    case Window::Kind::kFixed:
      return left.length == right.length;
    case Window::Kind::kCalendar:
      return left.unit == right.unit && left.time_zone == right.time_zone &&
             (left.unit != CalendarUnit::kWeek || left.week_start == right.week_start);
    case Window::Kind::kLifetime:
      return true;
  }
  return false;
}

bool same_rule(const Rule& left, const Rule& right) {
  return left.id == right.id && left.scope == right.scope && left.target == right.target &&
         left.event_type == right.event_type && left.limit == right.limit &&
         same_window(left.window, right.window) && left.segment == right.segment &&
         left.start == right.start && left.end == right.end && left.mode == right.mode &&
         left.enforcement == right.enforcement;
}

bool same_campaign(const Campaign& left, const Campaign& right) {
  return left.id == right.id && left.advertiser_id == right.advertiser_id &&
         left.groups == right.groups && left.deleted == right.deleted;
}

}  // namespace

std::string first_difference(const RuleSetSpec& left, const RuleSetSpec& right) {
  if (left.version != right.version) return "version";
  if (left.rules.size() != right.rules.size()) return "number of rules";
  if (left.campaigns.size() != right.campaigns.size()) return "number of campaigns";
  for (std::size_t i = 0; i < left.rules.size(); ++i) {
    if (!same_rule(left.rules[i], right.rules[i])) return "rule " + left.rules[i].id;
  }
  for (std::size_t i = 0; i < left.campaigns.size(); ++i) {
    if (!same_campaign(left.campaigns[i], right.campaigns[i])) {
      return "campaign " + left.campaigns[i].id;
    }
  }
  return "";
}

}  // namespace fcap::rule_text
