#pragma once

#include <cstdint>

/// Calendar arithmetic on 64-bit day numbers (0 is 1970-01-01), in the proleptic Gregorian
/// calendar. std::chrono's years are 16 bits wide; evaluation must survive any instant.
namespace fcap::rules {

inline constexpr std::int64_t kMsPerSecond = 1000;
inline constexpr std::int64_t kMsPerHour = 3600 * kMsPerSecond;
inline constexpr std::int64_t kMsPerDay = 24 * kMsPerHour;

[[nodiscard]] constexpr std::int64_t floor_div(std::int64_t value, std::int64_t by) noexcept {
  const std::int64_t quotient = value / by;
  return quotient - ((value % by != 0 && (value < 0) != (by < 0)) ? 1 : 0);
}

struct CivilMonth {
  std::int64_t year = 1970;
  std::int64_t month = 1;  ///< 1 to 12
};

/// The day number of the first of a month. Years are counted from March so that the leap day is
/// the last of its year.
[[nodiscard]] constexpr std::int64_t first_day_of(CivilMonth month) noexcept {
  const std::int64_t year = month.month > 2 ? month.year : month.year - 1;
  const std::int64_t months_since_march = (month.month + 9) % 12;
  const std::int64_t days_before_month = (153 * months_since_march + 2) / 5;
  const std::int64_t leap_days = floor_div(year, 4) - floor_div(year, 100) + floor_div(year, 400);
  constexpr std::int64_t kMarchOfYear0 = -719468;  // day number of 0000-03-01
  return kMarchOfYear0 + 365 * year + leap_days + days_before_month;
}

[[nodiscard]] constexpr CivilMonth next_month(CivilMonth month) noexcept {
  return month.month == 12 ? CivilMonth{month.year + 1, 1}
                           : CivilMonth{month.year, month.month + 1};
}

/// The month that a day lies in. The first guess, from the mean year, is at most a month off.
[[nodiscard]] constexpr CivilMonth month_of(std::int64_t day) noexcept {
  constexpr std::int64_t kDaysPer400Years = 146097;
  const std::int64_t months = floor_div((day * 4800) + 2400, kDaysPer400Years);
  CivilMonth month{1970 + floor_div(months, 12), months - floor_div(months, 12) * 12 + 1};
  while (first_day_of(month) > day) {
    month =
        month.month == 1 ? CivilMonth{month.year - 1, 12} : CivilMonth{month.year, month.month - 1};
  }
  while (first_day_of(next_month(month)) <= day) month = next_month(month);
  return month;
}

/// 0 is Sunday, as in std::chrono::weekday::c_encoding().
[[nodiscard]] constexpr std::int64_t weekday_of(std::int64_t day) noexcept {
  return (day + 4) - floor_div(day + 4, 7) * 7;
}

}  // namespace fcap::rules
