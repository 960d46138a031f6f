#include "rules/zone.h"

#include <algorithm>
#include <exception>
#include <fstream>
#include <limits>
#include <string_view>

#include <date/tz.h>

#include "rules/civil.h"
#include "rules/posix_tz.h"

namespace fcap::rules {
namespace {

constexpr std::int64_t kLastYear = 2100;
constexpr std::int64_t kBeginningOfTime = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kSecondsPerDay = kMsPerDay / kMsPerSecond;
constexpr const char* kZoneDirectory = "/usr/share/zoneinfo/";

// The POSIX TZ string between the last two line feeds of a zone file; empty when there is none.
std::string footer_of(const std::string& name) {
  std::ifstream file(kZoneDirectory + name, std::ios::binary);
  constexpr std::streamoff kFooterBytesMax = 128;
  file.seekg(0, std::ios::end);
  const std::streamoff size = file.tellg();
  if (!file || size <= 0) return {};
  file.seekg(std::max<std::streamoff>(0, size - kFooterBytesMax));
  const std::string tail{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (tail.size() < 2 || tail.back() != '\n') return {};
  const std::size_t previous = tail.rfind('\n', tail.size() - 2);
  if (previous == std::string::npos) return {};
  return tail.substr(previous + 1, tail.size() - previous - 2);
}

// The changes that the library lists. It ends where the zone file's table ends, which may be 2037
// or, in the slim form of these files, decades ago.
std::vector<OffsetChange> listed_changes(const date::time_zone& zone) {
  std::vector<OffsetChange> changes;
  const date::sys_seconds end{
      std::chrono::seconds{first_day_of({kLastYear + 1, 1}) * kSecondsPerDay}};
  date::sys_seconds at{std::chrono::seconds{0}};
  while (at < end) {
    const date::sys_info info = zone.get_info(at);
    changes.push_back({info.begin.time_since_epoch().count(), info.offset.count()});
    if (info.end <= at) break;
    at = info.end;
  }
  return changes;
}

}  // namespace

Zone::Zone() : stretches_{{kBeginningOfTime, 0, std::numeric_limits<std::int64_t>::max()}} {}

Result<Zone> Zone::load(const std::string& name) {
  if (name == "UTC" || name == "Etc/UTC") return Zone();
  std::vector<OffsetChange> changes;
  try {
    changes = listed_changes(*date::locate_zone(name));
  } catch (const std::exception&) {
    return Status::error(StatusCode::kNotFound,
                         "time zone \"" + name + "\" is not in the system's time-zone data");
  }
  const OffsetChange last_listed = changes.back();
  const std::int64_t last_listed_year =
      std::max<std::int64_t>(1970, month_of(floor_div(last_listed.at_s, kSecondsPerDay)).year);
  if (const auto more = foreseen_changes(footer_of(name), last_listed_year, kLastYear)) {
    for (const OffsetChange& change : *more) {
      if (change.at_s > last_listed.at_s) changes.push_back(change);
    }
  }
  Zone zone;
  zone.stretches_.clear();
  for (const OffsetChange& change : changes) {
    zone.add(change.at_s * kMsPerSecond, change.offset_s * kMsPerSecond);
  }
  zone.finish();
  return zone;
}

void Zone::add(std::int64_t begin_ms, std::int64_t offset_ms) {
  if (stretches_.empty()) {
    stretches_.push_back({kBeginningOfTime, offset_ms, 0});
    return;
  }
  if (stretches_.size() > 1 && stretches_.back().begin_ms == begin_ms) stretches_.pop_back();
  // A change of the abbreviation or of the DST flag alone is not an offset change.
  if (stretches_.back().offset_ms == offset_ms) return;
  stretches_.push_back({begin_ms, offset_ms, 0});
}

void Zone::finish() {
  std::int64_t reached = kBeginningOfTime;
  for (std::size_t i = 0; i + 1 < stretches_.size(); ++i) {
    const std::int64_t last_local_ms = stretches_[i + 1].begin_ms - 1 + stretches_[i].offset_ms;
    reached = std::max(reached, floor_div(last_local_ms, kMsPerDay));
    stretches_[i].reached_day = reached;
  }
  stretches_.back().reached_day = std::numeric_limits<std::int64_t>::max();
}

std::int64_t Zone::offset_at(std::int64_t instant_ms) const noexcept {
  return stretches_[stretch_at(instant_ms)].offset_ms;
}

std::size_t Zone::stretch_at(std::int64_t instant_ms) const noexcept {
  const auto after = std::upper_bound(
      stretches_.begin() + 1, stretches_.end(), instant_ms,
      [](std::int64_t instant, const ZoneStretch& stretch) { return instant < stretch.begin_ms; });
  return static_cast<std::size_t>(after - stretches_.begin()) - 1;
}

std::int64_t Zone::day_at(std::int64_t instant_ms) const noexcept {
  const std::size_t at = stretch_at(instant_ms);
  const std::int64_t day = floor_div(instant_ms + stretches_[at].offset_ms, kMsPerDay);
  return at == 0 ? day : std::max(day, stretches_[at - 1].reached_day);
}

std::int64_t Zone::day_begins(std::int64_t day) const noexcept {
  const auto at = std::lower_bound(
      stretches_.begin(), stretches_.end(), day,
      [](const ZoneStretch& stretch, std::int64_t wanted) { return stretch.reached_day < wanted; });
  return std::max(at->begin_ms, day * kMsPerDay - at->offset_ms);
}

std::int64_t Zone::hour_begins(std::int64_t instant_ms) const noexcept {
  std::size_t at = stretch_at(instant_ms);
  const std::int64_t hour = floor_div(instant_ms + stretches_[at].offset_ms, kMsPerHour);
  for (;; --at) {
    const ZoneStretch& stretch = stretches_[at];
    const std::int64_t on_the_hour = hour * kMsPerHour - stretch.offset_ms;
    if (on_the_hour >= stretch.begin_ms || at == 0) return on_the_hour;
    const std::int64_t before_jump =
        floor_div(stretch.begin_ms - 1 + stretches_[at - 1].offset_ms, kMsPerHour);
    if (before_jump != hour) return stretch.begin_ms;
  }
}

std::int64_t Zone::next_hour_begins(std::int64_t instant_ms) const noexcept {
  std::int64_t from_ms = instant_ms;
  for (std::size_t at = stretch_at(instant_ms);; ++at) {
    const std::int64_t offset_ms = stretches_[at].offset_ms;
    const std::int64_t hour = floor_div(from_ms + offset_ms, kMsPerHour);
    const std::int64_t on_the_hour = (hour + 1) * kMsPerHour - offset_ms;
    if (at + 1 == stretches_.size()) return on_the_hour;
    const ZoneStretch& next = stretches_[at + 1];
    if (on_the_hour < next.begin_ms) return on_the_hour;
    const std::int64_t local_after_jump = next.begin_ms + next.offset_ms;
    const std::int64_t hour_after_jump = floor_div(local_after_jump, kMsPerHour);
    const std::int64_t hour_before_jump = floor_div(next.begin_ms - 1 + offset_ms, kMsPerHour);
    if (hour_after_jump != hour_before_jump || local_after_jump % kMsPerHour == 0) {
      return next.begin_ms;
    }
    from_ms = next.begin_ms;
  }
}

std::string zone_data_version() {
  std::ifstream file(std::string(kZoneDirectory) + "tzdata.zi");
  std::string first_line;
  std::getline(file, first_line);
  constexpr std::string_view kPrefix = "# version ";
  if (first_line.starts_with(kPrefix)) return first_line.substr(kPrefix.size());
  return "unknown";
}

}  // namespace fcap::rules
