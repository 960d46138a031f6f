#include "events/timestamp.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace fcap::events {
namespace timestamp_test {

std::optional<std::int64_t> ms(std::string_view text) {
  const auto time = parse_timestamp(text);
  return time ? std::optional(to_ms(*time)) : std::nullopt;
}

TEST(Timestamp, WholeSecondsBecomeMilliseconds) {
  EXPECT_EQ(ms("1700000000"), 1'700'000'000'000);
}

TEST(Timestamp, FractionsAreRoundedDownExactly) {
  EXPECT_EQ(ms("1700000000.123"), 1'700'000'000'123);  // as a double times 1000: …122.99
  EXPECT_EQ(ms("1700000000.1239999999999999999999"), 1'700'000'000'123);
  EXPECT_EQ(ms("1700000000123.9"), 1'700'000'000'123);
  EXPECT_EQ(ms("0.001"), 1);
  EXPECT_EQ(ms("0.0019"), 1);
}

TEST(Timestamp, SecondsEndAtOneHundredBillionInclusive) {
  EXPECT_EQ(ms("100000000000"), 100'000'000'000'000);
  EXPECT_EQ(ms("1e11"), 100'000'000'000'000);
  EXPECT_EQ(ms("100000000000.000"), 100'000'000'000'000);
  EXPECT_EQ(ms("100000000001"), 100'000'000'001);
  EXPECT_EQ(ms("100000000000.0001"), 100'000'000'000);
  EXPECT_EQ(ms("99999999999.9999"), 99'999'999'999'999);
}

TEST(Timestamp, ExponentsMeanWhatTheySay) {
  EXPECT_EQ(ms("1.7e9"), 1'700'000'000'000);
  EXPECT_EQ(ms("17000000000e-1"), 1'700'000'000'000);
  EXPECT_EQ(ms("1.7E+12"), 1'700'000'000'000);
  EXPECT_EQ(ms("0.0000000017e18"), 1'700'000'000'000);
}

TEST(Timestamp, ZeroNegativeAndBoundlessAreRefused) {
  for (const char* text :
       {"0", "0.0", "-0", "-1", "-1700000000", "0e9", "0.0009", "1e-400", "1e400", "1e18",
        "1e99999999999999999999999", "1e-99999999999999999999999"}) {
    EXPECT_EQ(ms(text), std::nullopt) << text;
  }
  EXPECT_EQ(ms("999999999999999999"), 999'999'999'999'999'999);
}

TEST(Timestamp, GrammarIsThatOfJson) {
  for (const char* text : {"", "-", "+1", "01", "1.", ".5", "1e", "1e+", "0x10", "1 ", " 1", "1,0",
                           "NaN", "Infinity", "1e5.0", "--1"}) {
    EXPECT_FALSE(is_json_number(text)) << text;
  }
  for (const char* text : {"0", "-0", "10", "0.5", "-1.5e-7", "1E400"}) {
    EXPECT_TRUE(is_json_number(text)) << text;
  }
}

TEST(Timestamp, AnyNumberOfDigitsIsRead) {
  EXPECT_EQ(ms("1700000000." + std::string(10'000, '9')), 1'700'000'000'999);
  EXPECT_EQ(ms("0." + std::string(10'000, '0') + "17e10010"), 1'700'000'000'000);
}

}  // namespace timestamp_test
}  // namespace fcap::events
