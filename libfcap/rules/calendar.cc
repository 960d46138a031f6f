#include "rules/calendar.h"

#include "rules/civil.h"

namespace fcap::rules {

CalendarPeriod calendar_period(const Calendar& calendar, const Zone& zone,
                               std::int64_t instant_ms) noexcept {
  if (calendar.unit == CalendarUnit::kHour) {
    return {zone.hour_begins(instant_ms), zone.next_hour_begins(instant_ms)};
  }
  const std::int64_t day = zone.day_at(instant_ms);
  std::int64_t first = day;
  std::int64_t next = day + 1;
  if (calendar.unit == CalendarUnit::kWeek) {
    first = day - (weekday_of(day) - calendar.week_start + 7) % 7;
    next = first + 7;
  } else if (calendar.unit == CalendarUnit::kMonth) {
    const CivilMonth month = month_of(day);
    first = first_day_of(month);
    next = first_day_of(next_month(month));
  }
  return {zone.day_begins(first), zone.day_begins(next)};
}

}  // namespace fcap::rules
