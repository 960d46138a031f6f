// What fcap simulate reads: CSV and event messages, gzip or plain, and what it says of bad input.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "cli/simulate/csv_log.h"
#include "command.h"

namespace fcap::cli_test {
namespace simulate_log_test {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kTwoPerHour = R"({"version":1,"rules":[{"id":"two","scope":"campaign",
  "target":"*","limit":2,"window":{"kind":"sliding","length":"1h"}}]})";

Ran simulate(const std::string& log_path) {
  const File rules(kTwoPerHour);
  return run({"simulate", "--json", "--log", log_path, "--rules", rules.path()});
}

json simulated(const std::string& log) {
  const File file(log);
  const Ran ran = simulate(file.path());
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? json::parse(ran.out) : json();
}

constexpr const char* kCsv =
    "user_id,campaign_id,creative_or_empty,timestamp_unix_seconds\n"
    "u1,c1,pos1,1700000000\n"
    "u1,c1,,1700000001\n"
    "u1,c1,pos2,1700000002\n"
    "u2,c1,pos1,1700000003\n";

TEST(SimulateLog, CsvIsReadByTheNamesOfItsColumns) {
  const json report = simulated(kCsv);
  EXPECT_EQ(report["log"]["impressions"], 4);
  EXPECT_EQ(report["log"]["users"], 2);
  EXPECT_EQ(report["log"]["first_at"], 1'700'000'000'000);
  EXPECT_EQ(report["rule_sets"][0]["blocked"], 1);
  const json other = simulated(
      "x,timestamp,campaign_id,user_id\r\n"
      "9,2023-11-14T22:13:20Z,c1,u1\r\n"
      "9,1700000001500,c1,u1\r\n"
      "9,1700000002.25,\"c1\",u1\r\n");
  EXPECT_EQ(other["rule_sets"][0]["blocked"], 1);
  EXPECT_EQ(other["log"]["last_at"], 1'700'000'002'250);
  EXPECT_EQ(other["log"]["campaigns"], 1);
}

TEST(SimulateLog, CsvOfPostgresAndOfOtherToolsIsRead) {
  const json report = simulated(
      "user_id;campaign_id;timestamp\n"
      "u1;c1;2023-11-14 22:13:20+00\n"
      "u1;c1;2023-11-14 23:13:21.5+01\n");
  EXPECT_EQ(report["log"]["impressions"], 2);
  EXPECT_EQ(report["log"]["first_at"], 1'700'000'000'000);
  EXPECT_EQ(report["log"]["last_at"], 1'700'000'001'500);
}

TEST(SimulateLog, ColumnsMayHaveOtherNames) {
  const File log("uid,line_item,seen_at\nu1,c1,1700000000\n");
  const File rules(kTwoPerHour);
  const std::vector<std::string> command{
      "simulate",   "--json",   "--log",       log.path(), "--rules",
      rules.path(), "--column", "user_id=uid", "--column", "campaign_id=line_item"};
  std::vector<std::string> all = command;
  all.insert(all.end(), {"--column", "timestamp=seen_at"});
  const Ran ran = run(all);
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["log"]["impressions"], 1);
  EXPECT_THAT(run(command).err, HasSubstr("lacks timestamp"));
  all.back() = "timestamp=at";
  EXPECT_THAT(run(all).err, HasSubstr("lacks at (--column)"));
  all.back() = "time=at";
  EXPECT_THAT(run(all).err, HasSubstr("NAME must be one of"));
}

TEST(SimulateLog, RulesThatFitNoCampaignOfTheLogAreWarnedOf) {
  const File log(kCsv);
  const File typo(R"({"rules":[{"id":"two","scope":"campaign","target":"c11","limit":2,
    "window":{"kind":"sliding","length":"1h"}}]})");
  const Ran ran = run({"simulate", "--log", log.path(), "--rules", typo.path()});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.err, HasSubstr("no rule applies to any campaign of the log"));
  EXPECT_THAT(simulate(log.path()).err, Not(HasSubstr("no rule applies")));
}

TEST(SimulateLog, GzipAndPlainAreTheSame) {
  const File file("");
  const gzFile zipped = gzopen(file.path().c_str(), "wb");
  gzputs(zipped, kCsv);
  gzclose(zipped);
  const Ran ran = simulate(file.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["rule_sets"][0]["campaigns"],
            simulated(kCsv)["rule_sets"][0]["campaigns"]);
}

TEST(SimulateLog, CutOffGzipIsAnError) {
  const File file("");
  const gzFile zipped = gzopen(file.path().c_str(), "wb");
  gzputs(zipped, kCsv);
  gzclose(zipped);
  std::filesystem::resize_file(file.path(), std::filesystem::file_size(file.path()) - 12);
  const Ran ran = simulate(file.path());
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr(file.path() + " cannot be read to its end"));
  EXPECT_TRUE(ran.out.empty());
}

TEST(SimulateLog, EventMessagesAreReadLineByLine) {
  const json report = simulated(
      R"({"user_id":"u1","campaign_id":"c1","timestamp":1700000002,"imp_id":"i3"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}

{"user_id":"u1","campaign_id":"c1","timestamp":1700000001,"imp_id":"i2"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000001,"imp_id":"i2"}
)");
  EXPECT_EQ(report["log"]["impressions"], 3);
  EXPECT_EQ(report["log"]["repeated"], 1);
  EXPECT_EQ(report["rule_sets"][0]["blocked"], 1);
}

TEST(SimulateLog, MalformedLinesAreToldAndDoNotStopTheRest) {
  const File file(
      "user_id,campaign_id,timestamp\n"
      "u1,c1,1700000000\n"
      "u1,c1\n"
      "u1,,1700000000\n"
      "u1,c1,yesterday\n"
      "\n"
      "u1,c1,1700000001\n");
  const Ran ran = simulate(file.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json log = json::parse(ran.out)["log"];
  EXPECT_EQ(log["impressions"], 2);
  EXPECT_EQ(log["rejected"], 3);
  EXPECT_EQ(log["rejections"][0]["line"], 3);
  EXPECT_EQ(log["rejections"][0]["reason"], "2 fields, the header has 3");
  EXPECT_EQ(log["rejections"][1]["reason"], "no campaign_id");
  EXPECT_EQ(log["rejections"][2]["line"], 5);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("3 lines"), HasSubstr("line 5"), HasSubstr("yesterday")));
}

TEST(SimulateLog, HeaderThatLacksColumnsIsRefusedWithTheirNames) {
  const File file("user_id,creative_id\nu1,x\n");
  const Ran ran = simulate(file.path());
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, AllOf(HasSubstr("lacks campaign_id, timestamp"),
                             Not(HasSubstr("lacks user")), HasSubstr("user_id,creative_id")));
}

TEST(SimulateLog, LogWithoutImpressionsIsAnError) {
  const File empty("");
  EXPECT_EQ(simulate(empty.path()).code, 1);
  const File only_header("user_id,campaign_id,timestamp\n");
  const Ran ran = simulate(only_header.path());
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("no impression"));
}

TEST(SimulateLog, FileThatIsNotThereIsNamed) {
  const Ran ran = simulate("/nowhere/log.csv");
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("--log: /nowhere/log.csv cannot be opened"));
  const Ran directory = simulate(std::filesystem::temp_directory_path());
  EXPECT_EQ(directory.code, 1);
  EXPECT_THAT(directory.err, HasSubstr("is a directory"));
}

TEST(SimulateLog, ImpressionsOfNobodyAreLeftOutAloud) {
  const File file(
      "user_id,campaign_id,timestamp\n"
      "u1,c1,1700000000\n"
      ",c1,1700000000\n"
      "00000000-0000-0000-0000-000000000000,c1,1700000000\n");
  const Ran ran = simulate(file.path());
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json log = json::parse(ran.out)["log"];
  EXPECT_EQ(log["impressions"], 1);
  EXPECT_EQ(log["without_user"], 2);
  EXPECT_THAT(ran.err, HasSubstr("2 impressions have no user id"));
}

TEST(SimulateLog, QuotedFieldsMayHoldCommasAndQuotes) {
  cli::CsvLog csv;
  ASSERT_TRUE(csv.read_header("\xEF\xBB\xBFuser_id,campaign_id,timestamp").ok());
  events::Event event;
  ASSERT_TRUE(csv.read_row(R"("a,b","say ""hi""",1700000000)", event)) << csv.why();
  EXPECT_EQ(event.user_id, "a,b");
  EXPECT_EQ(event.campaign_id, "say \"hi\"");
  EXPECT_EQ(event.time, instant_from_ms(1'700'000'000'000));
}

TEST(SimulateLog, WithoutALogTheUseIsWrong) {
  const File rules(kTwoPerHour);
  EXPECT_EQ(run({"simulate", "--rules", rules.path()}).code, 2);
  const File log(kCsv);
  EXPECT_EQ(run({"simulate", "--log", log.path()}).code, 2);
}

}  // namespace simulate_log_test
}  // namespace fcap::cli_test
