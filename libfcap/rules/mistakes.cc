#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ledger/ids.h"
#include "rules/calendar.h"
#include "rules/compile.h"

namespace fcap::rules {
namespace {

constexpr std::string_view kDefaultTarget = "*";

std::string quoted(std::string_view text) {
  constexpr std::size_t kShownBytesMax = 64;
  std::string out = "\"";
  out.append(text.substr(0, kShownBytesMax));
  if (text.size() > kShownBytesMax) out.append("…");
  out.push_back('"');
  return out;
}

/// As a rule would have it written: "32d", "745h", "1500ms".
std::string length_text(std::int64_t ms) {
  struct Unit {
    std::int64_t ms;
    std::string_view name;
  };
  constexpr std::array<Unit, 4> kUnits{
      {{86'400'000, "d"}, {3'600'000, "h"}, {60'000, "m"}, {1000, "s"}}};
  for (const Unit& unit : kUnits) {
    if (ms != 0 && ms % unit.ms == 0) return std::to_string(ms / unit.ms).append(unit.name);
  }
  return std::to_string(ms) + "ms";
}

/// Whether two different ids of one kind have the same hash in the record: found by sorting, which
/// a million ids stand better than a map of strings.
class Collisions {
 public:
  explicit Collisions(std::string_view kind) : kind_(kind) {}

  void add(std::string_view id) { ids_.emplace_back(ledger::id_hash(id), id); }

  void report(Texts& mistakes) {
    std::sort(ids_.begin(), ids_.end());
    ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
    for (std::size_t i = 1; i < ids_.size(); ++i) {
      if (ids_[i].first != ids_[i - 1].first) continue;
      mistakes.add(std::string(kind_) + "s " + quoted(ids_[i - 1].second) + " and " +
                   quoted(ids_[i].second) +
                   " have the same 48-bit hash and cannot be told apart: rename one of them");
    }
  }

 private:
  std::string_view kind_;
  std::vector<std::pair<std::uint64_t, std::string_view>> ids_;
};

void check_id(const std::string& place, std::string_view what, std::string_view id,
              Texts& mistakes) {
  if (id.empty()) {
    mistakes.add(place + what.data() + " is empty");
  } else if (id.size() > ledger::kIdBytesMax) {
    mistakes.add(place + what.data() + " has " + std::to_string(id.size()) + " bytes, more than " +
                 std::to_string(ledger::kIdBytesMax));
  }
}

void check_target(const Rule& rule, const std::string& place, Texts& mistakes) {
  if (rule.scope > Scope::kUser) {
    mistakes.add(place + "scope is none of campaign, creative, advertiser, group, user");
  } else if (rule.scope == Scope::kUser) {
    if (!rule.target.empty()) {
      mistakes.add(place + "target " + quoted(rule.target) + ": the user scope has no target");
    }
  } else {
    check_id(place, "target", rule.target, mistakes);
  }
}

void check_window(const Rule& rule, std::int64_t retention_ms, const std::string& place,
                  Texts& mistakes) {
  const Window& window = rule.window;
  switch (window.kind) {
    case Window::Kind::kSliding:
    case Window::Kind::kFixed: {
      const std::int64_t length_ms = window.length.count();
      if (length_ms <= 0) {
        mistakes.add(place + "window length " + length_text(length_ms) + " is not above zero");
      } else if (length_ms > retention_ms) {
        mistakes.add(place + "window length " + length_text(length_ms) +
                     " is more than the retention, " + length_text(retention_ms));
      }
      return;
    }
    case Window::Kind::kCalendar: {
      if (window.unit > CalendarUnit::kMonth) {
        mistakes.add(place + "calendar unit is none of hour, day, week, month");
        return;
      }
      const std::int64_t needed_ms = longest_period_ms(window.unit);
      if (needed_ms > retention_ms) {
        mistakes.add(place + "calendar window needs a retention of " + length_text(needed_ms) +
                     "; it is " + length_text(retention_ms));
      }
      if (window.unit == CalendarUnit::kWeek && !window.week_start.ok()) {
        mistakes.add(place + "week start is not a day of the week");
      }
      return;
    }
    case Window::Kind::kLifetime:
      return;
  }
  mistakes.add(place + "window is none of sliding, calendar, fixed, lifetime");
}

void check_rule(const Rule& rule, std::int64_t retention_ms, Texts& mistakes) {
  const std::string place = "rule " + quoted(rule.id) + ": ";
  check_id(place, "id", rule.id, mistakes);
  check_target(rule, place, mistakes);
  if (rule.event_type > EventType::kConversion) {
    mistakes.add(place + "event type is none of impression, click, viewable, conversion");
  }
  check_window(rule, retention_ms, place, mistakes);
  if (rule.segment) check_id(place, "segment", *rule.segment, mistakes);
  if (rule.mode > Rule::Mode::kShadow) mistakes.add(place + "mode is none of enforce, shadow");
  if (rule.enforcement > Rule::Enforcement::kHard) {
    mistakes.add(place + "enforcement is none of soft, hard");
  }
}

void check_name(const std::string& place, std::string_view what, std::string_view id,
                Texts& mistakes) {
  check_id(place, what, id, mistakes);
  if (id == kDefaultTarget) {
    mistakes.add(place + std::string(what) + " \"*\" is reserved for default rules");
  }
}

void check_campaign(const Campaign& campaign, Texts& mistakes) {
  const std::string place = "campaign " + quoted(campaign.id) + ": ";
  check_name(place, "id", campaign.id, mistakes);
  if (!campaign.advertiser_id.empty()) {
    check_name(place, "advertiser", campaign.advertiser_id, mistakes);
  }
  for (const std::string& group : campaign.groups) check_name(place, "group", group, mistakes);
}

template <typename Items>
void find_duplicates(const Items& items, std::string_view kind, Texts& mistakes) {
  std::vector<std::string_view> ids;
  ids.reserve(items.size());
  for (const auto& item : items) ids.push_back(item.id);
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 1; i < ids.size(); ++i) {
    if (ids[i] == ids[i - 1] && (i == 1 || ids[i] != ids[i - 2])) {
      mistakes.add(std::string(kind) + " " + quoted(ids[i]) + ": the id is there more than once");
    }
  }
}

}  // namespace

void find_mistakes(const RuleSetSpec& spec, std::chrono::milliseconds retention, Texts& mistakes) {
  for (const Rule& rule : spec.rules) check_rule(rule, retention.count(), mistakes);
  for (const Campaign& campaign : spec.campaigns) check_campaign(campaign, mistakes);
  find_duplicates(spec.rules, "rule", mistakes);
  find_duplicates(spec.campaigns, "campaign", mistakes);

  Collisions campaigns("campaign");
  Collisions creatives("creative");
  for (const Campaign& campaign : spec.campaigns) campaigns.add(campaign.id);
  for (const Rule& rule : spec.rules) {
    if (rule.target == kDefaultTarget || rule.target.empty()) continue;
    if (rule.scope == Scope::kCampaign) campaigns.add(rule.target);
    if (rule.scope == Scope::kCreative) creatives.add(rule.target);
  }
  campaigns.report(mistakes);
  creatives.report(mistakes);
}

}  // namespace fcap::rules
