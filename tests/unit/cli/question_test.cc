#include <cstdint>
#include <limits>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/check_question.h"
#include "cli/instants.h"

namespace fcap::cli {
namespace question_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ParseCandidate, CreativeStandsBehindTheFirstSlash) {
  EXPECT_EQ(parse_candidate("c456").value().campaign, "c456");
  EXPECT_EQ(parse_candidate("c456").value().creative, "");
  EXPECT_EQ(parse_candidate("c456/cr9").value().campaign, "c456");
  EXPECT_EQ(parse_candidate("c456/cr9").value().creative, "cr9");
  EXPECT_EQ(parse_candidate("c/a/b").value().creative, "a/b");
  EXPECT_EQ(parse_candidate("c/").value().creative, "");
}

TEST(ParseCandidate, NeedsACampaignOfAtMost256Bytes) {
  EXPECT_FALSE(parse_candidate("").ok());
  EXPECT_FALSE(parse_candidate("/cr9").ok());
  EXPECT_TRUE(parse_candidate(std::string(256, 'c')).ok());
  EXPECT_FALSE(parse_candidate(std::string(257, 'c')).ok());
  EXPECT_FALSE(parse_candidate("c/" + std::string(257, 'r')).ok());
}

TEST(ParseQuestion, TakesEveryMember) {
  const auto parsed = parse_question(
      R"({"id":{"n":7},"user":"u1","candidates":["c1","c2/cr9",{"campaign":"a/b","creative":"x"}],)"
      R"("at":1700000000123,"segments":["gold","new"],"not known":1})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  const CheckQuestion& question = parsed.value();
  EXPECT_EQ(question.user, "u1");
  ASSERT_EQ(question.candidates.size(), 3U);
  EXPECT_EQ(question.candidates[1].creative, "cr9");
  EXPECT_EQ(question.candidates[2].campaign, "a/b");
  EXPECT_EQ(question.candidates[2].creative, "x");
  EXPECT_EQ(question.at, instant_from_ms(1'700'000'000'123));
  EXPECT_THAT(question.segments, ElementsAre("gold", "new"));
  EXPECT_EQ(question.id_json, R"({"n":7})");
}

TEST(ParseQuestion, InstantMayBeRfc3339) {
  const auto parsed =
      parse_question(R"({"user":"u1","candidates":[],"at":"2023-11-14T22:13:20+00:00"})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value().at, instant_from_ms(1'700'000'000'000));
}

TEST(ParseQuestion, InstantIsRefusedWhereItWouldNotFit) {
  const auto at = [](const std::string& number) {
    return parse_question(R"({"user":"u","candidates":[],"at":)" + number + "}");
  };
  EXPECT_EQ(at("9223372036854775807").value().at,
            instant_from_ms(std::numeric_limits<std::int64_t>::max()));
  EXPECT_EQ(at("-1500.5").value().at, instant_from_ms(-1501));
  for (const char* number : {"9223372036854775808", "18446744073709551615", "1e19", "1e300",
                             "100000000000000000000", "-9223372036854775809"}) {
    EXPECT_THAT(at(number).status().text(), HasSubstr("\"at\"")) << number;
  }
}

TEST(ParseQuestion, WhatLooksLikeSecondsIsTakenAsItStandsWithAWarning) {
  const auto parsed = parse_question(R"({"user":"u","candidates":[],"at":1700000000})");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value().at, instant_from_ms(1'700'000'000));
  EXPECT_THAT(parsed.value().warning, HasSubstr("1970-01-20"));
  EXPECT_EQ(parse_question(R"({"user":"u","candidates":[],"at":1700000000000})").value().warning,
            "");
}

TEST(ParseQuestion, NullUserIsTheEmptyOne) {
  EXPECT_EQ(parse_question(R"({"user":null,"candidates":["c"]})").value().user, "");
  EXPECT_EQ(parse_question(R"({"user_id":null,"candidates":["c"]})").value().user, "");
  EXPECT_EQ(parse_question(R"({"user":null,"user_id":"u1","candidates":["c"]})").value().user,
            "u1");
}

TEST(ParseQuestion, CandidatesAreNotAskedForWhereOnlyTheUserIs) {
  EXPECT_EQ(parse_question(R"({"user":"u1"})", Asks::kUserOnly).value().user, "u1");
  EXPECT_FALSE(parse_question(R"({"users":"u1"})", Asks::kUserOnly).ok());
}

struct WrongLine {
  const char* line;
  const char* said;
};

void PrintTo(const WrongLine& wrong, std::ostream* out) {
  *out << wrong.line;
}

class ParseQuestionRefuses : public ::testing::TestWithParam<WrongLine> {};

TEST_P(ParseQuestionRefuses, AndSaysWhat) {
  const auto parsed = parse_question(GetParam().line);
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.status().text(), HasSubstr(GetParam().said));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, ParseQuestionRefuses,
    ::testing::Values(WrongLine{"", "not JSON"}, WrongLine{"{", "not JSON"},
                      WrongLine{"[]", "object"}, WrongLine{"7", "object"},
                      WrongLine{R"({"candidates":["c"]})", "user"},
                      WrongLine{R"({"user":7,"candidates":["c"]})", "user"},
                      WrongLine{R"({"user":"u"})", "candidates"},
                      WrongLine{R"({"user":"u","candidates":"c"})", "candidates"},
                      WrongLine{R"({"user":"u","candidates":[7]})", "candidates"},
                      WrongLine{R"({"user":"u","candidates":[{}]})", "campaign"},
                      WrongLine{R"({"user":"u","candidates":["c"],"at":"soon"})", "at"},
                      WrongLine{R"({"user":"u","candidates":["c"],"at":[]})", "at"},
                      WrongLine{R"({"user":"u","candidates":["c"],"segments":"s"})", "segments"},
                      WrongLine{R"({"user":"u","candidates":["c"],"segments":[1]})", "segments"}));

TEST(ParseAt, TakesMillisecondsAndRfc3339) {
  EXPECT_EQ(parse_at("1700000000000", "--at").value(), instant_from_ms(1'700'000'000'000));
  EXPECT_EQ(parse_at("2023-11-14T22:13:20Z", "--at").value(), instant_from_ms(1'700'000'000'000));
  EXPECT_THAT(parse_at("tomorrow", "--at").status().text(), HasSubstr("--at"));
}

}  // namespace question_test
}  // namespace fcap::cli
