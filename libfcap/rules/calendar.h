#pragma once

#include <cstdint>

#include <fcap/rule.h>

#include "rules/zone.h"

namespace fcap::rules {

/// One unit of a calendar: an hour, day, week or month, in [begin_ms, next_ms).
struct CalendarPeriod {
  std::int64_t begin_ms = 0;
  std::int64_t next_ms = 0;

  [[nodiscard]] bool holds(std::int64_t instant_ms) const noexcept {
    return begin_ms <= instant_ms && instant_ms < next_ms;
  }
};

/// A way of dividing time into units.
struct Calendar {
  std::uint32_t zone = 0;  ///< index into the rule set's zones
  CalendarUnit unit = CalendarUnit::kDay;
  /// The day that weeks start on, 0 is Sunday; 0 for other units.
  std::uint8_t week_start = 0;

  friend bool operator==(const Calendar&, const Calendar&) = default;
};

/// The unit that holds an instant.
[[nodiscard]] CalendarPeriod calendar_period(const Calendar& calendar, const Zone& zone,
                                             std::int64_t instant_ms) noexcept;

/// How long a unit can get: its longest form, and the hour that clocks may go back.
[[nodiscard]] constexpr std::int64_t longest_period_ms(CalendarUnit unit) noexcept {
  constexpr std::int64_t kHour = 3'600'000;
  switch (unit) {
    case CalendarUnit::kHour:
      return 2 * kHour;
    case CalendarUnit::kDay:
      return 25 * kHour;
    case CalendarUnit::kWeek:
      return (7 * 24 + 1) * kHour;
    case CalendarUnit::kMonth:
      break;
  }
  return (31 * 24 + 1) * kHour;
}

}  // namespace fcap::rules
