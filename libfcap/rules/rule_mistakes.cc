#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time_text.h"
#include "ledger/ids.h"
#include "rules/calendar.h"
#include "rules/compile.h"
#include "rules/zone.h"

namespace fcap::rules {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kDefaultTarget = "*";

std::string quoted(std::string_view text) {
  constexpr std::size_t kShownBytesMax = 64;
  std::string out = "\"";
  out.append(text.substr(0, kShownBytesMax));
  if (text.size() > kShownBytesMax) out.append("…");
  out.push_back('"');
  return out;
}

// Where a mistake is. Its text is made only where there is one: a million rules have none.
struct MistakePlace {
  std::string_view kind;
  std::string_view id;

  [[nodiscard]] std::string text() const {
    return std::string(kind).append(" ").append(quoted(id)).append(": ");
  }
};

// Ids of one kind by their hash in the record, so that equal ones become neighbours.
class HashedIds {
 public:
  explicit HashedIds(std::string_view kind) : kind_(kind) {}

  void reserve(std::size_t count) { ids_.reserve(count); }
  void add(std::string_view id) { ids_.push_back({ledger::id_hash(id), id}); }

  // Hashes are numbers, which sort many times faster than ids.
  void sort() {
    std::sort(ids_.begin(), ids_.end(), [](const Hashed& a, const Hashed& b) {
      return a.hash != b.hash ? a.hash < b.hash : a.id < b.id;
    });
  }

  // Ids that have been added more than once, each named once.
  void report_duplicates(Texts& mistakes) const {
    for (std::size_t i = 1; i < ids_.size(); ++i) {
      if (ids_[i].id != ids_[i - 1].id || (i > 1 && ids_[i].id == ids_[i - 2].id)) continue;
      mistakes.add(std::string(kind_) + " " + quoted(ids_[i].id) +
                   ": the id is used more than once");
    }
  }

  // Different ids with one hash.
  void report_collisions(Texts& mistakes) const {
    for (std::size_t i = 1; i < ids_.size(); ++i) {
      if (ids_[i].hash != ids_[i - 1].hash || ids_[i].id == ids_[i - 1].id) continue;
      mistakes.add(std::string(kind_) + "s " + quoted(ids_[i - 1].id) + " and " +
                   quoted(ids_[i].id) +
                   " have the same 48-bit hash and cannot be told apart: rename one of them");
    }
  }

 private:
  struct Hashed {
    std::uint64_t hash;
    std::string_view id;
  };
  std::string_view kind_;
  std::vector<Hashed> ids_;
};

void check_id(const MistakePlace& place, std::string_view what, std::string_view id,
              Texts& mistakes) {
  if (id.empty()) {
    mistakes.add(place.text() + what.data() + " is empty");
  } else if (id.size() > ledger::kIdBytesMax) {
    mistakes.add(place.text() + what.data() + " has " + std::to_string(id.size()) +
                 " bytes, more than " + std::to_string(ledger::kIdBytesMax));
  }
}

void check_target(const Rule& rule, const MistakePlace& place, Texts& mistakes) {
  if (rule.scope > Scope::kUser) {
    mistakes.add(place.text() + "scope must be one of campaign, creative, advertiser, group, user");
  } else if (rule.scope == Scope::kUser) {
    if (!rule.target.empty()) {
      mistakes.add(place.text() + "target " + quoted(rule.target) +
                   ": the user scope has no target");
    }
  } else {
    check_id(place, "target", rule.target, mistakes);
  }
}

void check_window(const Rule& rule, milliseconds retention, const MistakePlace& place,
                  Texts& mistakes) {
  const Window& window = rule.window;
  switch (window.kind) {
    case Window::Kind::kSliding:
    case Window::Kind::kFixed: {
      if (window.length <= milliseconds{0}) {
        mistakes.add(place.text() + "window length " + base::format_length(window.length) +
                     " is not above zero");
      } else if (window.length > retention) {
        mistakes.add(place.text() + "window length " + base::format_length(window.length) +
                     " is more than the retention, " + base::format_length(retention));
      }
      return;
    }
    case Window::Kind::kCalendar: {
      if (window.unit > CalendarUnit::kMonth) {
        mistakes.add(place.text() + "calendar unit must be one of hour, day, week, month");
        return;
      }
      const milliseconds needed{longest_period_ms(window.unit)};
      if (needed > retention) {
        mistakes.add(place.text() + "calendar window needs a retention of " +
                     base::format_length(needed) + "; it is " + base::format_length(retention));
      }
      if (window.unit == CalendarUnit::kWeek && !window.week_start.ok()) {
        mistakes.add(place.text() + "week start is not a day of the week");
      }
      return;
    }
    case Window::Kind::kLifetime:
      return;
  }
  mistakes.add(place.text() + "window must be one of sliding, calendar, fixed, lifetime");
}

void check_rule(const Rule& rule, milliseconds retention, Texts& mistakes) {
  const MistakePlace place{"rule", rule.id};
  check_id(place, "id", rule.id, mistakes);
  check_target(rule, place, mistakes);
  if (rule.event_type > EventType::kConversion) {
    mistakes.add(place.text() +
                 "event type must be one of impression, click, viewable, conversion");
  }
  check_window(rule, retention, place, mistakes);
  if (rule.segment) check_id(place, "segment", *rule.segment, mistakes);
  if (rule.mode > Rule::Mode::kShadow)
    mistakes.add(place.text() + "mode must be enforce or shadow");
  if (rule.enforcement > Rule::Enforcement::kHard) {
    mistakes.add(place.text() + "enforcement must be soft or hard");
  }
}

void check_name(const MistakePlace& place, std::string_view what, std::string_view id,
                Texts& mistakes) {
  check_id(place, what, id, mistakes);
  if (id == kDefaultTarget) {
    mistakes.add(place.text() + std::string(what) + " \"*\" is reserved for default rules");
  }
}

void check_campaign(const Campaign& campaign, Texts& mistakes) {
  const MistakePlace place{"campaign", campaign.id};
  check_name(place, "id", campaign.id, mistakes);
  if (!campaign.advertiser_id.empty()) {
    check_name(place, "advertiser", campaign.advertiser_id, mistakes);
  }
  for (const std::string& group : campaign.groups) check_name(place, "group", group, mistakes);
}

// Looks up each time zone once.
class KnownZones {
 public:
  void check(const Rule& rule, Texts& mistakes) {
    if (rule.window.kind != Window::Kind::kCalendar) return;
    const std::string& name = rule.window.time_zone;
    auto known = why_not_.find(name);
    if (known == why_not_.end()) {
      const Result<Zone> zone = Zone::load(name);
      known = why_not_.emplace(name, zone.ok() ? std::string() : zone.status().text()).first;
    }
    if (!known->second.empty()) mistakes.add(MistakePlace{"rule", rule.id}.text() + known->second);
  }

 private:
  std::map<std::string, std::string> why_not_;  // empty: the zone is known
};

std::string in_one_line(const std::vector<std::string>& texts) {
  std::string line;
  for (const std::string& text : texts) line.append(line.empty() ? "" : "; ").append(text);
  return line;
}

// The indices of the items in which `check` finds a mistake, in order; adds to `why` what is wrong
// with each.
template <typename Item, typename Check>
std::vector<std::size_t> wrong_ones(const SharedList<Item>& items, std::vector<std::string>& why,
                                    Check check) {
  constexpr std::size_t kReportedOfOneMax = 4;
  std::vector<std::size_t> wrong;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Texts found(kReportedOfOneMax);
    check(items[i], found);
    if (found.empty()) continue;
    wrong.push_back(i);
    why.push_back(in_one_line(found.take()));
  }
  return wrong;
}

// `items` but for the wrong ones. Blocks in which nothing is wrong stay shared with whoever has
// them.
template <typename Item>
SharedList<Item> without(const SharedList<Item>& items, const std::vector<std::size_t>& wrong) {
  SharedListBuilder<Item> rest(items);
  rest.reserve(items.size() - wrong.size());
  auto next_wrong = wrong.begin();
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (next_wrong != wrong.end() && *next_wrong == i) {
      ++next_wrong;
    } else {
      rest.add(Item(items[i]));
    }
  }
  return rest.finish();
}

}  // namespace

std::vector<std::string> quarantine(SharedSpec& spec, std::chrono::milliseconds retention) {
  KnownZones zones;
  std::vector<std::string> why;
  const std::vector<std::size_t> wrong_rules =
      wrong_ones(spec.rules, why, [&](const Rule& rule, Texts& found) {
        check_rule(rule, retention, found);
        zones.check(rule, found);
      });
  if (wrong_rules.size() * 2 > spec.rules.size()) return {};
  const std::vector<std::size_t> wrong_campaigns =
      wrong_ones(spec.campaigns, why,
                 [](const Campaign& campaign, Texts& found) { check_campaign(campaign, found); });
  if (!wrong_rules.empty()) spec.rules = without(spec.rules, wrong_rules);
  if (!wrong_campaigns.empty()) spec.campaigns = without(spec.campaigns, wrong_campaigns);
  return why;
}

void find_mistakes(const SharedSpec& spec, std::chrono::milliseconds retention, Texts& mistakes) {
  for (const Rule& rule : spec.rules) check_rule(rule, retention, mistakes);
  for (const Campaign& campaign : spec.campaigns) check_campaign(campaign, mistakes);
  HashedIds rules("rule");
  rules.reserve(spec.rules.size());
  for (const Rule& rule : spec.rules) rules.add(rule.id);
  rules.sort();
  rules.report_duplicates(mistakes);

  HashedIds campaigns("campaign");
  HashedIds creatives("creative");
  campaigns.reserve(spec.campaigns.size());
  for (const Campaign& campaign : spec.campaigns) campaigns.add(campaign.id);
  campaigns.sort();
  campaigns.report_duplicates(mistakes);
  for (const Rule& rule : spec.rules) {
    if (rule.target == kDefaultTarget || rule.target.empty()) continue;
    if (rule.scope == Scope::kCampaign) campaigns.add(rule.target);
    if (rule.scope == Scope::kCreative) creatives.add(rule.target);
  }
  campaigns.sort();
  campaigns.report_collisions(mistakes);
  creatives.sort();
  creatives.report_collisions(mistakes);
}

}  // namespace fcap::rules
