// --time-zone: instants by the clocks of a place.
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time_text.h"
#include "cli/local_time.h"
#include "command.h"

namespace fcap::cli_test {
namespace time_zone_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kOneADay = R"({"version": 1, "campaigns": [], "rules": [
  {"id": "one", "scope": "campaign", "target": "c1", "event_type": "impression", "limit": 1,
   "start": "2026-01-01T00:00:00Z", "window": {"kind": "sliding", "length": "1d"}}]})";
// 2026-10-24T12:00:00Z. Clocks in Berlin go from +02:00 to +01:00 between this and the day after.
constexpr const char* kEvent =
    R"({"user_id":"u1","campaign_id":"c1","timestamp":1792843200,"imp_id":"i1"})";

Ran ask(const std::string& command, const std::vector<std::string>& more) {
  const File rules(kOneADay);
  const File events(kEvent);
  std::vector<std::string> words = {command,       "u1",         "c1",
                                    "--rules",     rules.path(), "--events",
                                    events.path(), "--at",       "2026-10-24T13:00:00Z"};
  words.insert(words.end(), more.begin(), more.end());
  return run(words);
}

TEST(TimeZone, ChecksAndExplanationsUseTheClocksOfThePlace) {
  const Ran check = ask("check", {"--time-zone", "Europe/Berlin"});
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("user u1 at 2026-10-24T15:00:00+02:00"));
  EXPECT_THAT(check.out, HasSubstr("passes again 2026-10-25T13:00:00+01:00"));
  EXPECT_THAT(check.out, Not(HasSubstr("Z")));
  const Ran explain = ask("explain", {"--time-zone", "America/St_Johns"});
  EXPECT_THAT(explain.out, HasSubstr("user u1 at 2026-10-24T10:30:00-02:30"));
  EXPECT_THAT(explain.out, HasSubstr("counted since 2026-10-23T10:30:00.001-02:30"));
}

TEST(TimeZone, WithoutOneItIsUtcAndJsonStaysAsItIs) {
  EXPECT_THAT(ask("check", {}).out, HasSubstr("passes again 2026-10-25T12:00:00Z"));
  EXPECT_EQ(ask("check", {"--json", "--time-zone", "Europe/Berlin"}).out,
            ask("check", {"--json"}).out);
}

TEST(TimeZone, RulesSayFromWhen) {
  const File rules(kOneADay);
  const Ran ran = run({"rules", "--rules", rules.path(), "--time-zone", "Asia/Kolkata"});
  EXPECT_THAT(ran.out, HasSubstr("from 2026-01-01T05:30:00+05:30"));
}

TEST(TimeZone, AnUnknownZoneIsNamed) {
  for (const char* const command : {"check", "explain"}) {
    const Ran ran = ask(command, {"--time-zone", "Europe/Berlim"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("--time-zone: "));
    EXPECT_THAT(ran.err, HasSubstr("Europe/Berlim"));
  }
  const Ran show = run({"show", "u1", "--time-zone", "Mars/Olympus", "--redis", "127.0.0.1:1"});
  EXPECT_EQ(show.code, 2);
  EXPECT_THAT(show.err, HasSubstr("--time-zone: "));
}

TEST(TimeZone, WhatIsPrintedCanBeReadAgain) {
  const auto local = cli::LocalTime::of("Asia/Kathmandu");
  ASSERT_TRUE(local.ok());
  for (const std::int64_t ms : {0LL, 1'700'000'000'123LL, -1LL, 4'102'444'800'000LL}) {
    const std::string text = local.value().text(instant_from_ms(ms));
    EXPECT_EQ(base::parse_instant(text), instant_from_ms(ms)) << text;
  }
}

}  // namespace time_zone_test
}  // namespace fcap::cli_test
