// --segments DIR: stored segments without any server.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "support/temporary_directory.h"

namespace fcap::cli_test {
namespace segments_test {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kRules = R"({
  "version": 3,
  "rules": [
    {"id": "all", "scope": "campaign", "target": "c1", "limit": 1,
     "window": {"kind": "sliding", "length": "24h"}},
    {"id": "vip", "scope": "campaign", "target": "c1", "limit": 2, "segment": "vip",
     "window": {"kind": "sliding", "length": "24h"}}
  ]
})";
constexpr const char* kEvents =
    R"({"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
{"user_id":"7","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
{"user_id":"07","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
)";

class CliSegments : public ::testing::Test {
 protected:
  CliSegments() {
    std::ofstream(directory_.file("vip.ids")) << "u1\n7\n";
    std::ofstream(directory_.file("empty.ids"));
  }

  Ran fcap(std::vector<std::string> arguments, const std::string& input = {}) const {
    arguments.insert(arguments.end(), {"--segments", directory_.path()});
    return run(arguments, input);
  }
  // Whether c1 may be shown to the user, who has seen it once.
  bool allowed(const std::string& user, const std::string& more = {}) const {
    const Ran ran =
        fcap({"check", "--rules", rules_.path(), "--events", events_.path()},
             R"({"user":")" + user + R"(","candidates":["c1"],"at":1700000100000)" + more + "}\n");
    EXPECT_EQ(ran.code, 0) << ran.err;
    return json::parse(ran.out)["verdicts"][0]["allowed"];
  }

  const File rules_{kRules};
  const File events_{kEvents};
  const TemporaryDirectory directory_;
};

TEST_F(CliSegments, CheckUnitesStoredMembersWithThoseOfTheQuestion) {
  EXPECT_TRUE(allowed("u1"));
  EXPECT_TRUE(allowed("7"));
  EXPECT_FALSE(allowed("07"));
  EXPECT_TRUE(allowed("07", R"(,"segments":["vip"])"));
}

TEST_F(CliSegments, AnswersSayWhichVersionTheyWereJudgedBy) {
  const Ran ran = fcap({"check", "--rules", rules_.path(), "--events", events_.path()},
                       R"({"user":"u1","candidates":["c1"],"at":1700000100000})");
  EXPECT_GT(json::parse(ran.out)["segment_set_version"].get<std::uint64_t>(), 1'600'000'000'000U);
  const Ran without = run({"check", "--rules", rules_.path(), "--events", events_.path()},
                          R"({"user":"u1","candidates":["c1"],"at":1700000100000})");
  EXPECT_FALSE(json::parse(without.out).contains("segment_set_version"));
}

TEST_F(CliSegments, WithoutARuleForASegmentNothingIsRead) {
  const File general(
      R"({"rules":[{"id":"r","scope":"user","limit":1,"window":{"kind":"lifetime"}}]})");
  std::ofstream(directory_.file("broken.roaring64")) << "no bitmap";
  const Ran ran = fcap({"check", "--rules", general.path(), "--events", events_.path()},
                       R"({"user":"u1","candidates":["c1"]})");
  EXPECT_EQ(ran.code, 0) << ran.err;
  const Ran judged = fcap({"check", "--rules", rules_.path(), "--events", events_.path()},
                          R"({"user":"u1","candidates":["c1"]})");
  EXPECT_EQ(judged.code, 1);
  EXPECT_THAT(judged.err, AllOf(HasSubstr("--segments"), HasSubstr("broken.roaring64")));
}

TEST_F(CliSegments, RulesTellsEachSegmentsMembersAndBytes) {
  const Ran ran = fcap({"rules", "--rules", rules_.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, HasSubstr("2 segments, 2 members"));
  EXPECT_THAT(ran.out, ::testing::ContainsRegex("\nvip +2 +[0-9]+\n"));
  EXPECT_THAT(ran.out, ::testing::ContainsRegex("\nempty +0 +[0-9]+\n"));
  EXPECT_THAT(ran.out, Not(HasSubstr("warning")));
}

TEST_F(CliSegments, RulesCheckTellsThemAsJsonAndWarnsOfTheUnknown) {
  std::filesystem::rename(directory_.file("vip.ids"), directory_.file("VIP.ids"));
  std::ofstream(directory_.file("readme.txt")) << "no segment";
  const Ran ran = fcap({"rules", "--check", "--json", "--rules", rules_.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const json told = json::parse(ran.out);
  EXPECT_EQ(told["ok"], true);
  ASSERT_THAT(told["warnings"], SizeIs(2));
  EXPECT_THAT(told["warnings"][0], HasSubstr("readme.txt is ignored"));
  EXPECT_THAT(told["warnings"][1], HasSubstr("segment \"vip\", which rule \"vip\" names"));
  EXPECT_EQ(told["segments"]["members"], 2);
  EXPECT_GT(told["segments"]["bytes"].get<int>(), 0);
  ASSERT_THAT(told["segments"]["segments"], SizeIs(2));
  EXPECT_EQ(told["segments"]["segments"][0]["name"], "VIP");
  EXPECT_EQ(told["segments"]["segments"][0]["members"], 2);
}

TEST_F(CliSegments, RulesCheckTakesABrokenFileForAMistake) {
  std::ofstream(directory_.file("broken.roaring64")) << "no bitmap";
  const Ran ran = fcap({"rules", "--check", "--rules", rules_.path()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("error: "), HasSubstr("broken.roaring64")));
}

TEST_F(CliSegments, SimulateAppliesMembersLimits) {
  const File log(
      "user_id,campaign_id,timestamp\n"
      "u1,c1,1700000000\nu1,c1,1700000001\nu1,c1,1700000002\nu2,c1,1700000000\nu2,c1,1700000001\n");
  const std::vector<std::string> command{"simulate", "--json",  "--log",
                                         log.path(), "--rules", rules_.path()};
  const Ran with = fcap(command);
  EXPECT_EQ(with.code, 0) << with.err;
  EXPECT_EQ(json::parse(with.out)["rule_sets"][0]["blocked"], 2);
  EXPECT_THAT(with.err, IsEmpty());
  const Ran without = run(command);
  EXPECT_EQ(json::parse(without.out)["rule_sets"][0]["blocked"], 3);
  EXPECT_THAT(without.err, HasSubstr("no segments are loaded"));
}

}  // namespace segments_test
}  // namespace fcap::cli_test
