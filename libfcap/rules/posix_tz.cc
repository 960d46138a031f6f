#include "rules/posix_tz.h"

#include <algorithm>

#include "rules/civil.h"

namespace fcap::rules {
namespace {

// The day and local time of a change in any year.
struct YearlyChange {
  enum class DayForm : std::uint8_t { kMonthWeekDay, kJulianNoLeap, kZeroBased };
  DayForm form = DayForm::kMonthWeekDay;
  std::int64_t month = 1, week = 1, weekday = 0;  // kMonthWeekDay; week 5 is the last
  std::int64_t day = 0;                           // the other forms
  std::int64_t time_s = std::int64_t{2} * 3600;
};

// Reads a POSIX TZ string from left to right; each function says whether it succeeded.
class PosixTzReader {
 public:
  explicit PosixTzReader(std::string_view text) : left_(text) {}

  [[nodiscard]] bool done() const { return left_.empty(); }

  bool accept(char c) {
    if (left_.empty() || left_.front() != c) return false;
    left_.remove_prefix(1);
    return true;
  }

  bool name() {
    if (accept('<')) {
      const std::size_t close = left_.find('>');
      if (close == std::string_view::npos) return false;
      left_.remove_prefix(close + 1);
      return true;
    }
    std::size_t length = 0;
    while (length < left_.size() && is_letter(left_[length])) ++length;
    left_.remove_prefix(length);
    return length >= 3;
  }

  bool number(std::int64_t& value) {
    std::size_t length = 0;
    value = 0;
    while (length < left_.size() && length < 4 && left_[length] >= '0' && left_[length] <= '9') {
      value = value * 10 + (left_[length++] - '0');
    }
    left_.remove_prefix(length);
    return length > 0;
  }

  // [+-]hh[:mm[:ss]]
  bool time(std::int64_t& seconds) {
    const bool negative = accept('-');
    if (!negative) accept('+');
    std::int64_t hours = 0, minutes = 0, rest = 0;
    if (!number(hours)) return false;
    if (accept(':') && !number(minutes)) return false;
    if (accept(':') && !number(rest)) return false;
    seconds = hours * 3600 + minutes * 60 + rest;
    if (negative) seconds = -seconds;
    return true;
  }

  bool yearly_change(YearlyChange& change) {
    if (!accept(',')) return false;
    if (accept('M')) {
      change.form = YearlyChange::DayForm::kMonthWeekDay;
      if (!number(change.month) || !accept('.') || !number(change.week) || !accept('.') ||
          !number(change.weekday)) {
        return false;
      }
      if (change.month < 1 || change.month > 12 || change.week < 1 || change.week > 5 ||
          change.weekday > 6) {
        return false;
      }
    } else {
      change.form =
          accept('J') ? YearlyChange::DayForm::kJulianNoLeap : YearlyChange::DayForm::kZeroBased;
      if (!number(change.day) || change.day > 366) return false;
    }
    return !accept('/') || time(change.time_s);
  }

 private:
  static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

  std::string_view left_;
};

std::int64_t day_in_year(const YearlyChange& change, std::int64_t year) {
  const std::int64_t new_year = first_day_of({year, 1});
  switch (change.form) {
    case YearlyChange::DayForm::kZeroBased:
      return new_year + change.day;
    case YearlyChange::DayForm::kJulianNoLeap: {
      const bool leap = first_day_of({year + 1, 1}) - new_year == 366;
      return new_year + change.day - 1 + (leap && change.day >= 60 ? 1 : 0);
    }
    case YearlyChange::DayForm::kMonthWeekDay:
      break;
  }
  const CivilMonth month{year, change.month};
  const std::int64_t first = first_day_of(month);
  std::int64_t day = first + (change.weekday - weekday_of(first) + 7) % 7 + 7 * (change.week - 1);
  if (day >= first_day_of(next_month(month))) day -= 7;
  return day;
}

}  // namespace

std::optional<std::vector<OffsetChange>> foreseen_changes(std::string_view posix_tz,
                                                          std::int64_t first_year,
                                                          std::int64_t last_year) {
  PosixTzReader reader(posix_tz);
  std::int64_t standard_west_s = 0;
  if (!reader.name() || !reader.time(standard_west_s)) return std::nullopt;
  std::vector<OffsetChange> changes;
  if (reader.done()) return changes;

  // POSIX writes offsets westwards: UTC minus local time.
  const std::int64_t standard_s = -standard_west_s;
  std::int64_t summer_west_s = standard_west_s - 3600;
  YearlyChange to_summer, to_standard;
  if (!reader.name()) return std::nullopt;
  PosixTzReader without_offset = reader;
  if (!without_offset.yearly_change(to_summer)) {
    if (!reader.time(summer_west_s)) return std::nullopt;
  }
  const std::int64_t summer_s = -summer_west_s;
  if (!reader.yearly_change(to_summer) || !reader.yearly_change(to_standard) || !reader.done()) {
    return std::nullopt;
  }
  constexpr std::int64_t kSecondsPerDay = kMsPerDay / kMsPerSecond;
  for (std::int64_t year = first_year; year <= last_year; ++year) {
    changes.push_back(
        {day_in_year(to_summer, year) * kSecondsPerDay + to_summer.time_s - standard_s, summer_s});
    changes.push_back(
        {day_in_year(to_standard, year) * kSecondsPerDay + to_standard.time_s - summer_s,
         standard_s});
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const OffsetChange& a, const OffsetChange& b) { return a.at_s < b.at_s; });
  return changes;
}

}  // namespace fcap::rules
