#include "rules/calendar.h"

#include <chrono>
#include <iostream>
#include <random>

#include <date/tz.h>
#include <gtest/gtest.h>

#include "rules/civil.h"
#include "rules/posix_tz.h"
#include "tests/unit/rules/rules_fixture.h"

namespace fcap::rules {
namespace calendar_test {

namespace ch = std::chrono;

struct Utc {
  int year, month, day, hour = 0, minute = 0, second = 0;
};

std::int64_t ms(Utc at) {
  const ch::sys_days date{ch::year{at.year} / at.month / at.day};
  return ch::duration_cast<ch::milliseconds>(date.time_since_epoch() + ch::hours{at.hour} +
                                             ch::minutes{at.minute} + ch::seconds{at.second})
      .count();
}

// Starts of units: that `start` is one, that `next` is the one after it, and both edges to the
// millisecond.
void expect_unit(const Window& window, Utc start, Utc next) {
  SCOPED_TRACE(window.time_zone + " " + std::to_string(start.year) + "-" +
               std::to_string(start.month) + "-" + std::to_string(start.day));
  const auto zone = Zone::load(window.time_zone);
  ASSERT_TRUE(zone.ok()) << zone.status().text();
  const Calendar calendar{.zone = 0,
                          .unit = window.unit,
                          .week_start = static_cast<std::uint8_t>(window.week_start.c_encoding())};
  const std::int64_t start_ms = ms(start);
  const std::int64_t next_ms = ms(next);
  const auto period = [&](std::int64_t at_ms) {
    return calendar_period(calendar, zone.value(), at_ms);
  };
  EXPECT_EQ(period(start_ms - 1).next_ms, start_ms) << "one millisecond before";
  EXPECT_LT(period(start_ms - 1).begin_ms, start_ms);
  for (const std::int64_t inside :
       {start_ms, start_ms + 1, (start_ms + next_ms) / 2, next_ms - 1}) {
    EXPECT_EQ(period(inside).begin_ms, start_ms) << inside;
    EXPECT_EQ(period(inside).next_ms, next_ms) << inside;
  }
  EXPECT_EQ(period(next_ms).begin_ms, next_ms);
}

Window days(std::string_view zone) {
  return calendar(CalendarUnit::kDay, zone);
}
Window hours(std::string_view zone) {
  return calendar(CalendarUnit::kHour, zone);
}
Window months(std::string_view zone) {
  return calendar(CalendarUnit::kMonth, zone);
}
Window weeks(std::string_view zone, ch::weekday start) {
  return calendar(CalendarUnit::kWeek, zone, start);
}

TEST(CalendarDay, HasTwentyThreeAndTwentyFiveHoursWhenClocksChange) {
  expect_unit(days("Europe/Berlin"), {2024, 3, 30, 23}, {2024, 3, 31, 22});
  expect_unit(days("Europe/Berlin"), {2024, 10, 26, 22}, {2024, 10, 27, 23});
  expect_unit(days("America/New_York"), {2024, 3, 10, 5}, {2024, 3, 11, 4});
  expect_unit(days("America/New_York"), {2024, 11, 3, 4}, {2024, 11, 4, 5});
}

TEST(CalendarDay, StartsAtTheFirstInstantThereIsWhereMidnightIsSkipped) {
  expect_unit(days("America/Sao_Paulo"), {2018, 11, 4, 3}, {2018, 11, 5, 2});
  expect_unit(days("Asia/Beirut"), {2022, 3, 26, 22}, {2022, 3, 27, 21});
  expect_unit(days("Africa/Cairo"), {2024, 4, 25, 22}, {2024, 4, 26, 21});
  expect_unit(days("America/Havana"), {2024, 3, 10, 5}, {2024, 3, 11, 4});
}

TEST(CalendarDay, StartsOnceWhereClocksGoBackToTheEveningBefore) {
  expect_unit(days("America/Sao_Paulo"), {2018, 2, 17, 2}, {2018, 2, 18, 3});
  expect_unit(days("Asia/Beirut"), {2022, 10, 28, 21}, {2022, 10, 29, 22});
  expect_unit(days("Africa/Cairo"), {2024, 10, 30, 21}, {2024, 10, 31, 22});
}

TEST(CalendarDay, StartsTheFirstTimeWhereMidnightComesTwice) {
  expect_unit(days("America/Havana"), {2024, 11, 3, 4}, {2024, 11, 4, 5});
}

TEST(CalendarDay, DoesNotStartAgainWhereClocksGoBackAMinuteAfterMidnight) {
  expect_unit(days("America/St_Johns"), {2010, 11, 7, 2, 30}, {2010, 11, 8, 3, 30});
  expect_unit(days("America/St_Johns"), {2010, 11, 6, 2, 30}, {2010, 11, 7, 2, 30});
}

TEST(CalendarDay, ASkippedDayHasNoLength) {
  expect_unit(days("Pacific/Apia"), {2011, 12, 29, 10}, {2011, 12, 30, 10});
  expect_unit(days("Pacific/Apia"), {2011, 12, 30, 10}, {2011, 12, 31, 10});
}

TEST(CalendarDay, FollowsOffsetsOfOddLength) {
  expect_unit(days("Africa/Monrovia"), {1972, 1, 7, 0, 44, 30}, {1972, 1, 8});
  expect_unit(days("Asia/Kathmandu"), {2024, 5, 1, 18, 15}, {2024, 5, 2, 18, 15});
}

TEST(CalendarWeek, StartsOnTheChosenDayAcrossClockChanges) {
  expect_unit(weeks("Europe/Berlin", ch::Monday), {2024, 3, 24, 23}, {2024, 3, 31, 22});
  expect_unit(weeks("Europe/Berlin", ch::Sunday), {2024, 3, 30, 23}, {2024, 4, 6, 22});
  expect_unit(weeks("UTC", ch::Saturday), {2024, 2, 24}, {2024, 3, 2});
  expect_unit(weeks("America/Havana", ch::Sunday), {2024, 11, 3, 4}, {2024, 11, 10, 5});
}

TEST(CalendarWeek, StartsWithTheDayAfterWhereItsFirstDayIsSkipped) {
  expect_unit(weeks("Pacific/Apia", ch::Friday), {2011, 12, 30, 10}, {2012, 1, 5, 10});
}

TEST(CalendarMonth, HasItsLengthLeapYearsIncluded) {
  expect_unit(months("UTC"), {2024, 2, 1}, {2024, 3, 1});
  expect_unit(months("UTC"), {2023, 2, 1}, {2023, 3, 1});
  expect_unit(months("UTC"), {2000, 2, 1}, {2000, 3, 1});
  expect_unit(months("UTC"), {2100, 2, 1}, {2100, 3, 1});
  expect_unit(months("Europe/Berlin"), {2024, 9, 30, 22}, {2024, 10, 31, 23});
  expect_unit(months("America/New_York"), {2023, 12, 1, 5}, {2024, 1, 1, 5});
}

TEST(CalendarHour, RepeatedHourIsTwoHours) {
  expect_unit(hours("Europe/Berlin"), {2024, 10, 27, 0}, {2024, 10, 27, 1});
  expect_unit(hours("Europe/Berlin"), {2024, 10, 27, 1}, {2024, 10, 27, 2});
  expect_unit(hours("America/Havana"), {2024, 11, 3, 4}, {2024, 11, 3, 5});
  expect_unit(hours("America/Havana"), {2024, 11, 3, 5}, {2024, 11, 3, 6});
}

TEST(CalendarHour, SkippedHourHasNoLength) {
  expect_unit(hours("Europe/Berlin"), {2024, 3, 31, 0}, {2024, 3, 31, 1});
  expect_unit(hours("Europe/Berlin"), {2024, 3, 31, 1}, {2024, 3, 31, 2});
}

TEST(CalendarHour, HalfHourChangeShortensOneHourAndLengthensAnother) {
  // Forward, 02:00 to 02:30: the jump changes the hour, which then lasts until 03:00.
  expect_unit(hours("Australia/Lord_Howe"), {2024, 10, 5, 14, 30}, {2024, 10, 5, 15, 30});
  expect_unit(hours("Australia/Lord_Howe"), {2024, 10, 5, 15, 30}, {2024, 10, 5, 16});
  // Back, 02:00 to 01:30: still the hour of one o'clock.
  expect_unit(hours("Australia/Lord_Howe"), {2024, 4, 6, 14}, {2024, 4, 6, 15, 30});
}

TEST(CalendarHour, StartsAtLocalHourWhereTheOffsetIsNoWholeHour) {
  expect_unit(hours("Asia/Kolkata"), {2024, 5, 1, 10, 30}, {2024, 5, 1, 11, 30});
  expect_unit(hours("Asia/Kathmandu"), {2024, 5, 1, 10, 15}, {2024, 5, 1, 11, 15});
}

TEST(CalendarZone, FollowsTheFooterBehindTheEndOfTheTable) {
  expect_unit(days("Europe/Berlin"), {2050, 6, 30, 22}, {2050, 7, 1, 22});
  expect_unit(days("Europe/Berlin"), {2099, 3, 28, 23}, {2099, 3, 29, 22});
  expect_unit(days("America/New_York"), {2060, 1, 1, 5}, {2060, 1, 2, 5});
  expect_unit(days("Pacific/Auckland"), {2045, 1, 9, 11}, {2045, 1, 10, 11});
  expect_unit(days("Australia/Lord_Howe"), {2045, 1, 9, 13}, {2045, 1, 10, 13});
}

TEST(CalendarZone, UnknownNameIsNotFound) {
  for (const char* name : {"", "Mars/Olympus", "../../etc/passwd", "Europe/Berlin\n"}) {
    EXPECT_FALSE(Zone::load(name).ok()) << name;
  }
}

// The table of one zone against the library itself, at random instants and at every change.
TEST(CalendarZone, HoursAndDaysAgreeWithTheLibraryInEveryStretch) {
  const std::uint64_t seed = test_seed();
  std::cout << "FCAP_TEST_SEED=" << seed << "\n";
  std::mt19937_64 random(seed);
  for (const char* name : {"Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Asia/Beirut",
                           "Australia/Lord_Howe", "Africa/Cairo", "America/Havana", "Pacific/Apia",
                           "America/St_Johns", "Africa/Casablanca", "Asia/Tehran"}) {
    SCOPED_TRACE(name);
    const auto zone = Zone::load(name);
    ASSERT_TRUE(zone.ok());
    const date::time_zone* library = date::locate_zone(name);
    for (int i = 0; i < 2000; ++i) {
      const std::int64_t at_ms =
          std::uniform_int_distribution<std::int64_t>(0, ms({2037, 1, 1}))(random);
      const auto info =
          library->get_info(date::sys_time<ch::milliseconds>{ch::milliseconds{at_ms}});
      const std::int64_t offset_ms = info.offset.count() * 1000;
      const std::int64_t day = zone.value().day_at(at_ms);
      const std::int64_t local_day = floor_div(at_ms + offset_ms, kMsPerDay);
      EXPECT_TRUE(day == local_day || day == local_day + 1) << at_ms;
      EXPECT_LE(zone.value().day_begins(day), at_ms);
      EXPECT_GT(zone.value().day_begins(day + 1), at_ms);
      EXPECT_LE(zone.value().hour_begins(at_ms), at_ms);
      EXPECT_GT(zone.value().next_hour_begins(at_ms), at_ms);
      EXPECT_LE(zone.value().next_hour_begins(at_ms) - zone.value().hour_begins(at_ms),
                longest_period_ms(CalendarUnit::kHour));
    }
  }
}

TEST(Civil, MonthsAndWeekdaysAgreeWithTheStandardLibrary) {
  for (std::int64_t day = -800'000; day < 800'000; day += 13) {
    const ch::sys_days date{ch::days{day}};
    const ch::year_month_day civil{date};
    const CivilMonth month = month_of(day);
    ASSERT_EQ(month.year, static_cast<int>(civil.year())) << day;
    ASSERT_EQ(month.month, static_cast<unsigned>(civil.month())) << day;
    ASSERT_EQ(first_day_of(month),
              ch::sys_days{civil.year() / civil.month() / 1}.time_since_epoch().count());
    ASSERT_EQ(weekday_of(day), ch::weekday{date}.c_encoding());
  }
}

TEST(PosixTz, ReadsEveryFormOfYearlyChange) {
  const auto berlin = foreseen_changes("CET-1CEST,M3.5.0,M10.5.0/3", 2024, 2024);
  ASSERT_TRUE(berlin && berlin->size() == 2);
  EXPECT_EQ((*berlin)[0].at_s * 1000, ms({2024, 3, 31, 1}));
  EXPECT_EQ((*berlin)[0].offset_s, 7200);
  EXPECT_EQ((*berlin)[1].at_s * 1000, ms({2024, 10, 27, 1}));
  const auto nuuk = foreseen_changes("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2024, 2024);
  ASSERT_TRUE(nuuk && nuuk->size() == 2);
  EXPECT_EQ((*nuuk)[0].at_s * 1000, ms({2024, 3, 31, 1}));
  const auto south = foreseen_changes("NZST-12NZDT,M9.5.0,M4.1.0/3", 2024, 2024);
  ASSERT_TRUE(south && south->size() == 2);
  EXPECT_EQ((*south)[0].at_s * 1000, ms({2024, 4, 6, 14}));
  const auto julian = foreseen_changes("AAA0BBB,J60/0,59/0", 2024, 2024);
  ASSERT_TRUE(julian && julian->size() == 2);
  EXPECT_EQ((*julian)[0].at_s * 1000, ms({2024, 2, 28, 23}));  // day 59, counted from 0: 29 Feb
  EXPECT_EQ((*julian)[1].at_s * 1000, ms({2024, 3, 1}));       // J60 is 1 March in every year
  EXPECT_TRUE(foreseen_changes("JST-9", 2024, 2024)->empty());
  for (const char* text : {"", "X", "CET", "CET-1CEST", "CET-1CEST,M3.5.0",
                           "CET-1CEST,M13.5.0,M1.1.0", "<CET-1", "CET-1CEST,M3.5.0,M10.5.0/3x"}) {
    EXPECT_FALSE(foreseen_changes(text, 2024, 2024).has_value()) << text;
  }
}

TEST(CalendarWindow, CountsFromTheFirstMillisecondOfTheDayAndPassesAtTheNext) {
  Scene scene;
  scene.rule({.id = "day", .target = "c1", .limit = 1, .window = days("Europe/Berlin")});
  const std::int64_t start_ms = ms({2024, 3, 30, 23});
  const std::int64_t next_ms = ms({2024, 3, 31, 22});
  scene.event("c1", start_ms - 1);
  EXPECT_FALSE(scene.check("c1", start_ms - 1).allowed);
  EXPECT_EQ(eligible_ms(scene.check("c1", start_ms - 1)), start_ms);
  EXPECT_TRUE(scene.check("c1", start_ms).allowed);
  scene.event("c1", start_ms);
  EXPECT_FALSE(scene.check("c1", next_ms - 1).allowed);
  EXPECT_EQ(eligible_ms(scene.check("c1", start_ms)), next_ms);
  EXPECT_TRUE(scene.check("c1", next_ms).allowed);
}

TEST(CalendarWindow, FutureEventCountsUntilItsOwnDayIsOver) {
  Scene scene;
  scene.rule({.id = "day", .target = "c1", .limit = 1, .window = days("UTC")});
  scene.event("c1", ms({2024, 5, 2, 0, 2}));
  const Verdict verdict = scene.check("c1", ms({2024, 5, 1, 23, 59}));
  EXPECT_FALSE(verdict.allowed);
  EXPECT_EQ(eligible_ms(verdict), ms({2024, 5, 3}));
}

}  // namespace calendar_test
}  // namespace fcap::rules
