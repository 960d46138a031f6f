#include "tests/unit/rules/reference.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <date/tz.h>

namespace fcap::rules::reference {
namespace {

namespace ch = std::chrono;

struct LocalMinute {
  std::int64_t at_ms = 0;
  std::int64_t local_minutes = 0;
};

// Every minute of the tests' time with the local time that clocks show.
const std::vector<LocalMinute>& minutes_of(const std::string& zone_name) {
  static std::map<std::string, std::vector<LocalMinute>> zones;
  std::vector<LocalMinute>& minutes = zones[zone_name];
  if (!minutes.empty()) return minutes;
  const date::time_zone* zone = date::locate_zone(zone_name);
  const date::sys_seconds begin{ch::sys_days{ch::year{2025} / 10 / 1}.time_since_epoch()};
  const date::sys_seconds end{ch::sys_days{ch::year{2026} / 10 / 1}.time_since_epoch()};
  date::sys_info info = zone->get_info(begin);
  for (date::sys_seconds at = begin; at < end; at += ch::minutes{1}) {
    if (at >= info.end) info = zone->get_info(at);
    minutes.push_back(
        {at.time_since_epoch().count() * 1000, (at.time_since_epoch() + info.offset).count() / 60});
  }
  return minutes;
}

bool starts_unit(ch::year_month_day day, const Window& window) {
  switch (window.unit) {
    case CalendarUnit::kHour:
    case CalendarUnit::kDay:
      return true;
    case CalendarUnit::kWeek:
      return ch::weekday{ch::sys_days{day}} == window.week_start;
    case CalendarUnit::kMonth:
      break;
  }
  return day.day() == ch::day{1};
}

std::vector<std::int64_t> walk_calendar(const Window& window) {
  std::vector<std::int64_t> starts;
  const auto& minutes = minutes_of(window.time_zone);
  std::int64_t latest_day = minutes.front().local_minutes / 1440;
  for (std::size_t i = 1; i < minutes.size(); ++i) {
    if (window.unit == CalendarUnit::kHour) {
      const bool on_the_hour = minutes[i].local_minutes % 60 == 0;
      const bool changed = minutes[i].local_minutes / 60 != minutes[i - 1].local_minutes / 60;
      if (on_the_hour || changed) starts.push_back(minutes[i].at_ms);
      continue;
    }
    const std::int64_t day = minutes[i].local_minutes / 1440;
    bool starts_here = false;
    for (; latest_day < day; ++latest_day) {
      const ch::sys_days date{ch::days{latest_day + 1}};
      starts_here |= starts_unit(ch::year_month_day{date}, window);
    }
    if (starts_here) starts.push_back(minutes[i].at_ms);
  }
  return starts;
}

std::int64_t calendar_start(const Window& window, std::int64_t at_ms) {
  const std::vector<std::int64_t>& starts = calendar_starts(window);
  const auto next = std::upper_bound(starts.begin(), starts.end(), at_ms);
  return next == starts.begin() ? INT64_MIN : *std::prev(next);
}

std::vector<std::string> targets_of(const World& world, const Candidate& candidate, Scope scope) {
  switch (scope) {
    case Scope::kCampaign:
      return {candidate.campaign};
    case Scope::kCreative:
      if (candidate.creative.empty()) return {};
      return {candidate.creative};
    case Scope::kUser:
      return {""};
    case Scope::kAdvertiser:
    case Scope::kGroup:
      break;
  }
  for (const Campaign& campaign : world.spec.campaigns) {
    if (campaign.id != candidate.campaign) continue;
    if (scope == Scope::kGroup) return campaign.groups;
    if (!campaign.advertiser_id.empty()) return {campaign.advertiser_id};
  }
  return {};
}

bool belongs(const World& world, const Event& event, Scope scope, const std::string& target) {
  const Candidate as_candidate{event.campaign, event.creative};
  const auto targets = targets_of(world, as_candidate, scope);
  return std::find(targets.begin(), targets.end(), target) != targets.end();
}

bool same_identity(const Event& a, const Event& b) {
  return a.campaign == b.campaign && a.type == b.type && a.id == b.id;
}

// Counts what belongs to the target. The world's reservations are those that are live at the
// check's instant, of which some may have expired at `at_ms`.
std::uint32_t count_of(const World& world, const Applied& applied, std::int64_t at_ms) {
  const Rule& rule = *applied.rule;
  const Window& window = rule.window;
  const auto counts = [&](const Event& event) {
    return event.type == rule.event_type && belongs(world, event, rule.scope, applied.target) &&
           at_ms - world.retention_ms < event.at_ms;
  };
  std::vector<std::int64_t> times;
  for (const Event& event : world.events) {
    if (counts(event)) times.push_back(event.at_ms);
  }
  std::vector<std::int64_t> reserved;
  for (const Reservation& reservation : world.reservations) {
    if (counts(reservation.event) && at_ms < reservation.expires_ms) {
      reserved.push_back(reservation.event.at_ms);
    }
  }
  std::sort(times.begin(), times.end());
  std::uint32_t count = 0;
  if (window.kind == Window::Kind::kFixed) {
    const std::int64_t length_ms = window.length.count();
    std::vector<std::int64_t> opened;
    for (const std::int64_t time : times) {
      if (opened.empty() || time >= opened.back() + length_ms) opened.push_back(time);
      if (at_ms < opened.back() + length_ms) ++count;
    }
    for (const std::int64_t time : reserved) {
      std::int64_t open_ms = time;
      for (const std::int64_t of_entries : opened) {
        if (of_entries <= time && time < of_entries + length_ms) open_ms = of_entries;
      }
      if (at_ms < open_ms + length_ms) ++count;
    }
    return count;
  }
  times.insert(times.end(), reserved.begin(), reserved.end());
  const std::int64_t unit_ms =
      window.kind == Window::Kind::kCalendar ? calendar_start(window, at_ms) : 0;
  for (const std::int64_t time : times) {
    if (window.kind == Window::Kind::kLifetime) ++count;
    if (window.kind == Window::Kind::kSliding && at_ms - window.length.count() < time) ++count;
    if (window.kind == Window::Kind::kCalendar && unit_ms <= time) ++count;
  }
  return count;
}

bool in_force_for_user(const World& world, const Rule& rule, std::int64_t at_ms) {
  if (rule.start && at_ms < to_ms(*rule.start)) return false;
  if (rule.end && at_ms >= to_ms(*rule.end)) return false;
  if (!rule.segment) return true;
  return std::find(world.segments.begin(), world.segments.end(), *rule.segment) !=
         world.segments.end();
}

bool same_window(const Window& a, const Window& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == Window::Kind::kSliding || a.kind == Window::Kind::kFixed) {
    return a.length == b.length;
  }
  if (a.kind == Window::Kind::kLifetime) return true;
  if (a.unit != b.unit || a.time_zone != b.time_zone) return false;
  return a.unit != CalendarUnit::kWeek || a.week_start == b.week_start;
}

bool limit_ranks_before(const Rule& a, const Rule& b) {
  const std::int64_t limit_a = a.limit ? *a.limit : INT64_MAX;
  const std::int64_t limit_b = b.limit ? *b.limit : INT64_MAX;
  return limit_a != limit_b ? limit_a < limit_b : a.id < b.id;
}

// Every rule that applies to the candidate at an instant.
std::vector<Applied> applying(const World& world, const Candidate& candidate, std::int64_t at_ms) {
  std::vector<const Rule*> in_force;
  for (const Rule& rule : world.spec.rules) {
    if (in_force_for_user(world, rule, at_ms)) in_force.push_back(&rule);
  }
  std::vector<Applied> applied;
  for (const Rule* rule : in_force) {
    bool replaced = false;
    for (const Rule* other : in_force) {
      if (other == rule || !other->segment) continue;
      if (other->scope != rule->scope || other->target != rule->target ||
          other->event_type != rule->event_type || other->mode != rule->mode ||
          !same_window(other->window, rule->window)) {
        continue;
      }
      replaced |= !rule->segment || limit_ranks_before(*other, *rule);
    }
    if (replaced) continue;
    const bool is_default = rule->scope != Scope::kUser && rule->target == "*";
    for (const std::string& target : targets_of(world, candidate, rule->scope)) {
      if (!is_default && target != rule->target) continue;
      const bool named =
          is_default && std::any_of(in_force.begin(), in_force.end(), [&](const Rule* other) {
            return other->scope == rule->scope && other->target == target &&
                   other->event_type == rule->event_type && other->mode == rule->mode;
          });
      if (!named) applied.push_back({rule, target});
    }
  }
  return applied;
}

bool stands(const World& world, const Applied& applied, std::int64_t at_ms) {
  return applied.rule->limit && count_of(world, applied, at_ms) >= *applied.rule->limit;
}

// All instants from `now` on at which an answer can change.
std::vector<std::int64_t> instants(const World& world, std::int64_t now_ms) {
  std::set<std::int64_t> all{now_ms};
  std::int64_t last_ms = now_ms;
  const auto add = [&](const Event& event) {
    last_ms = std::max(last_ms, event.at_ms);
    all.insert(event.at_ms + world.retention_ms);
    for (const Rule& rule : world.spec.rules) all.insert(event.at_ms + rule.window.length.count());
  };
  for (const Event& event : world.events) add(event);
  for (const Reservation& reservation : world.reservations) {
    add(reservation.event);
    all.insert(reservation.expires_ms);
  }
  for (const Rule& rule : world.spec.rules) {
    if (rule.start) all.insert(to_ms(*rule.start));
    if (rule.end) all.insert(to_ms(*rule.end));
    if (rule.window.kind != Window::Kind::kCalendar) continue;
    for (const std::int64_t start_ms : calendar_starts(rule.window)) {
      if (start_ms >= now_ms && start_ms <= last_ms + world.retention_ms) all.insert(start_ms);
    }
  }
  return {all.lower_bound(now_ms), all.end()};
}

}  // namespace

const std::vector<std::int64_t>& calendar_starts(const Window& window) {
  using Key = std::tuple<CalendarUnit, std::string, unsigned>;
  static std::map<Key, std::vector<std::int64_t>> known;
  std::vector<std::int64_t>& starts =
      known[{window.unit, window.time_zone, window.week_start.c_encoding()}];
  if (starts.empty()) starts = walk_calendar(window);
  return starts;
}

bool is_live(const World& world, const Reservation& reservation, std::int64_t now_ms) {
  if (reservation.released || now_ms >= reservation.expires_ms) return false;
  if (reservation.event.at_ms > now_ms + 5 * 60'000) return false;
  return std::none_of(world.events.begin(), world.events.end(), [&](const Event& event) {
    return same_identity(event, reservation.event) && event.at_ms > now_ms - world.retention_ms;
  });
}

void merge_copies(World& world, std::optional<std::int64_t> erased_ms) {
  std::vector<Event> events;
  for (const Event& copy : world.events) {
    if (erased_ms && copy.at_ms <= *erased_ms) continue;
    const auto known = std::find_if(events.begin(), events.end(),
                                    [&](const Event& event) { return same_identity(event, copy); });
    if (known == events.end()) {
      events.push_back(copy);
    } else if (known->at_ms < copy.at_ms) {
      *known = copy;
    }
  }
  std::vector<Reservation> reservations;
  for (const Reservation& copy : world.reservations) {
    const auto known = std::find_if(
        reservations.begin(), reservations.end(),
        [&](const Reservation& other) { return same_identity(other.event, copy.event); });
    if (known == reservations.end()) {
      reservations.push_back(copy);
      continue;
    }
    known->released |= copy.released;
    known->expires_ms = std::max(known->expires_ms, copy.expires_ms);
    if (known->event.at_ms < copy.event.at_ms) known->event = copy.event;
  }
  std::erase_if(reservations, [&](const Reservation& reservation) {
    return erased_ms && reservation.event.at_ms <= *erased_ms;
  });
  world.events = events;
  world.reservations = reservations;
}

bool may_reserve(const World& world, const Candidate& candidate, std::int64_t now_ms) {
  World with = world;
  std::erase_if(with.reservations,
                [&](const Reservation& each) { return !is_live(world, each, now_ms); });
  with.reservations.push_back(
      {.event = {now_ms, candidate.campaign, candidate.creative}, .expires_ms = now_ms + 1});
  const auto now_applying = applying(world, candidate, now_ms);
  return std::all_of(now_applying.begin(), now_applying.end(), [&](const Applied& applied) {
    const Rule& rule = *applied.rule;
    if (rule.mode == Rule::Mode::kShadow || !rule.limit) return true;
    const std::uint32_t count = count_of(with, applied, now_ms);
    return rule.event_type == EventType::kImpression ? count <= *rule.limit : count < *rule.limit;
  });
}

Answer judge(const World& past, const Candidate& candidate, std::int64_t now_ms) {
  World world = past;
  std::erase_if(world.reservations,
                [&](const Reservation& each) { return !is_live(past, each, now_ms); });
  World confirmed = world;
  confirmed.reservations.clear();
  const std::vector<std::int64_t> all = instants(world, now_ms);
  const auto now_applying = applying(world, candidate, now_ms);
  Answer answer;
  const auto latest = [](std::optional<std::int64_t> ms) { return ms.value_or(INT64_MAX); };
  std::optional<std::int64_t> named_eligible;
  for (const Applied& applied : now_applying) {
    Account account{count_of(world, applied, now_ms), 0, stands(world, applied, now_ms), now_ms};
    account.reserved = account.count - count_of(confirmed, applied, now_ms);
    if (account.stands) {
      account.eligible_ms.reset();
      for (const std::int64_t at_ms : all) {
        const auto then = applying(world, candidate, at_ms);
        const bool still = std::find(then.begin(), then.end(), applied) != then.end() &&
                           stands(world, applied, at_ms);
        if (still) continue;
        account.eligible_ms = at_ms;
        break;
      }
    }
    answer.accounts[{applied.rule->id, applied.target}] = account;
    if (!account.stands) continue;
    if (applied.rule->mode == Rule::Mode::kShadow) {
      answer.shadow = true;
      continue;
    }
    // The latest eligible_at, the smallest id, and where one default stands for several groups the
    // largest count.
    bool later = answer.allowed || latest(account.eligible_ms) > latest(named_eligible);
    if (!later && account.eligible_ms == named_eligible) {
      later = applied.rule->id < answer.rule_id ||
              (applied.rule->id == answer.rule_id && account.count > answer.count);
    }
    answer.allowed = false;
    if (!later) continue;
    named_eligible = account.eligible_ms;
    answer.rule_id = applied.rule->id;
    answer.count = account.count;
    answer.limit = *applied.rule->limit;
  }
  for (const std::int64_t at_ms : all) {
    const auto then = applying(world, candidate, at_ms);
    const bool passes = std::none_of(then.begin(), then.end(), [&](const Applied& applied) {
      return applied.rule->mode == Rule::Mode::kEnforce && stands(world, applied, at_ms);
    });
    if (!passes) continue;
    answer.eligible_ms = at_ms;
    break;
  }
  return answer;
}

}  // namespace fcap::rules::reference
