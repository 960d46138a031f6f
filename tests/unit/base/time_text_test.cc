#include "base/time_text.h"

#include <limits>

#include <gtest/gtest.h>

namespace fcap::base {
namespace time_text_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LengthText, ReadsAWholeNumberWithItsUnit) {
  EXPECT_EQ(parse_length("1ms"), milliseconds{1});
  EXPECT_EQ(parse_length("90s"), seconds{90});
  EXPECT_EQ(parse_length("15m"), seconds{900});
  EXPECT_EQ(parse_length("24h"), hours{24});
  EXPECT_EQ(parse_length("7d"), hours{168});
}

TEST(LengthText, RefusesWhatIsNotALengthAboveZero) {
  for (const char* text : {"", "0s", "-1h", "+1h", "1", "h", "1.5h", "1 h", " 1h", "1h ", "1hh",
                           "1H", "1w", "01h", "1h30m", "99999999999999999999s"}) {
    EXPECT_EQ(parse_length(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(LengthText, RefusesALengthThatDoesNotFit) {
  EXPECT_EQ(parse_length("106751991167d"), milliseconds{106751991167LL * 86'400'000});
  EXPECT_EQ(parse_length("106751991168d"), std::nullopt);
}

TEST(LengthText, ZeroIsALengthWhereItIsAllowed) {
  EXPECT_EQ(parse_length_or_zero("250ms"), milliseconds{250});
  EXPECT_EQ(parse_length_or_zero("0ms"), milliseconds{0});
  EXPECT_EQ(parse_length_or_zero("0d"), milliseconds{0});
  EXPECT_EQ(parse_length_or_zero("05s"), seconds{5});
  EXPECT_EQ(parse_length_or_zero("32d"), std::chrono::days{32});
  for (const char* text : {"", "5", "s", "-5s", "-0s", "+5s", "5 s", "5S", "1.5s",
                           "99999999999999999999s", "9223372036854775807d"}) {
    EXPECT_EQ(parse_length_or_zero(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(LengthText, WritesTheLargestUnitWithoutRemainder) {
  EXPECT_EQ(format_length(hours{24}), "1d");
  EXPECT_EQ(format_length(hours{36}), "36h");
  EXPECT_EQ(format_length(seconds{90}), "90s");
  EXPECT_EQ(format_length(seconds{120}), "2m");
  EXPECT_EQ(format_length(milliseconds{86'400'001}), "86400001ms");
  EXPECT_EQ(format_length(milliseconds{0}), "0ms");
}

TEST(LengthText, ReadsBackWhatItWrites) {
  for (const milliseconds length : {milliseconds{1}, milliseconds{1000}, milliseconds{3'600'000},
                                    milliseconds{std::numeric_limits<std::int64_t>::max()}}) {
    EXPECT_EQ(parse_length(format_length(length)), length);
  }
}

TEST(InstantText, ReadsRfc3339) {
  EXPECT_EQ(parse_instant("1970-01-01T00:00:00Z"), instant_from_ms(0));
  EXPECT_EQ(parse_instant("2023-11-14T22:13:20Z"), instant_from_ms(1'700'000'000'000));
  EXPECT_EQ(parse_instant("2023-11-14t22:13:20.5z"), instant_from_ms(1'700'000'000'500));
  EXPECT_EQ(parse_instant("2023-11-14 23:13:20.1239+01:00"), instant_from_ms(1'700'000'000'123));
  EXPECT_EQ(parse_instant("2023-11-14T18:43:20-03:30"), instant_from_ms(1'700'000'000'000));
  EXPECT_EQ(parse_instant("1969-12-31T23:59:59.999Z"), instant_from_ms(-1));
}

TEST(InstantText, RefusesWhatIsNoInstant) {
  for (const char* text : {"",
                           "2026-03-01",
                           "2026-03-01T00:00:00",
                           "2026-02-29T00:00:00Z",
                           "2026-13-01T00:00:00Z",
                           "2026-00-01T00:00:00Z",
                           "2026-03-00T00:00:00Z",
                           "2026-03-01T24:00:00Z",
                           "2026-03-01T00:60:00Z",
                           "2026-03-01T00:00:60Z",
                           "2026-03-01T00:00:00.Z",
                           "2026-03-01T00:00:00+01",
                           "2026-03-01T00:00:00+24:00",
                           "2026-03-01T00:00:00ZZ",
                           "26-03-01T00:00:00Z",
                           "+2026-03-01T00:00:00Z",
                           "0000-01-01T00:00:00+00:01",
                           "9999-12-31T23:59:59-00:01",
                           "infinity",
                           "1700000000"}) {
    EXPECT_EQ(parse_instant(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(InstantText, WritesUtcAndMillisecondsOnlyWhereThereAreSome) {
  EXPECT_EQ(format_instant(instant_from_ms(1'700'000'000'000)), "2023-11-14T22:13:20Z");
  EXPECT_EQ(format_instant(instant_from_ms(1'700'000'000'007)), "2023-11-14T22:13:20.007Z");
  EXPECT_EQ(format_instant(instant_from_ms(-1)), "1969-12-31T23:59:59.999Z");
}

TEST(InstantText, WritesTheNearestInstantThatItCanRead) {
  EXPECT_EQ(format_instant(Instant::max()), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(format_instant(Instant::min()), "0000-01-01T00:00:00Z");
  EXPECT_TRUE(parse_instant(format_instant(Instant::max())).has_value());
}

TEST(SpokenLength, NamesTheUnitsThatMatter) {
  using namespace std::chrono_literals;
  EXPECT_EQ(spoken_length(0ms), "0 s");
  EXPECT_EQ(spoken_length(450ms), "450 ms");
  EXPECT_EQ(spoken_length(61s), "1 min 1 s");
  EXPECT_EQ(spoken_length(3h + 12min), "3 h 12 min");
  EXPECT_EQ(spoken_length(24h * 20 + 3h), "20 d");
}

}  // namespace time_text_test
}  // namespace fcap::base
