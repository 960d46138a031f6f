// What fcap simulate makes of a log.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "test_paths.h"
#include "tests/support/impression_log.h"
#include "tests/support/seed.h"

namespace fcap::cli_test {
namespace simulate_replay_test {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string rules_json(const std::string& rules) {
  return R"({"version":7,"rules":[)" + rules + "]}";
}

json simulated(const std::string& log, const std::vector<std::string>& rule_sets) {
  const File file(log);
  std::vector<std::string> arguments{"simulate", "--json", "--log", file.path()};
  std::vector<std::unique_ptr<File>> files;
  for (const std::string& rules : rule_sets) {
    files.push_back(std::make_unique<File>(rules_json(rules)));
    arguments.insert(arguments.end(), {"--rules", files.back()->path()});
  }
  const Ran ran = run(arguments);
  EXPECT_EQ(ran.code, 0) << ran.err;
  return ran.code == 0 ? json::parse(ran.out) : json();
}

std::string content_of(const File& file) {
  std::stringstream content;
  content << std::ifstream(file.path()).rdbuf();
  return content.str();
}

// The JSON that a page draws.
std::string report_text(const std::string& page) {
  constexpr std::string_view kBegin = R"(id="report">)";
  const std::size_t begin = page.find(kBegin);
  if (begin == std::string::npos) return {};
  const std::size_t first = begin + kBegin.size();
  return page.substr(first, page.find("</script>", first) - first);
}

constexpr const char* kTwoPerHour =
    R"({"id":"two","scope":"campaign","target":"*","limit":2,"window":{"kind":"sliding","length":"1h"}})";
constexpr const char* kOneForC2 =
    R"({"id":"one","scope":"campaign","target":"c2","limit":1,"window":{"kind":"lifetime"}})";

TEST(Simulate, BlockedImpressionDoesNotCountForLaterOnes) {
  // The third is blocked. The fourth comes an hour after the first: were the third counted, two
  // would still be in the window.
  const json report = simulated(
      "user_id,campaign_id,timestamp\n"
      "u1,c1,1700000000\nu1,c1,1700001000\nu1,c1,1700002000\nu1,c1,1700003600\n",
      {kTwoPerHour});
  EXPECT_EQ(report["rule_sets"][0]["blocked"], 1);
}

TEST(Simulate, RowsAreReplayedInTheOrderOfTime) {
  const json report = simulated(
      "user_id,campaign_id,timestamp\n"
      "u1,c1,1700003600\nu1,c1,1700002000\nu1,c1,1700000000\nu1,c1,1700001000\n",
      {kTwoPerHour});
  EXPECT_EQ(report["rule_sets"][0]["blocked"], 1);
}

TEST(Simulate, RuleSetsStandSideBySide) {
  const json report = simulated(
      "user_id,campaign_id,timestamp\n"
      "u1,c1,1700000000\nu1,c1,1700000001\nu1,c1,1700000002\n"
      "u1,c2,1700000000\nu1,c2,1700009999\nu2,c2,1700000000\n",
      {kTwoPerHour, std::string(kTwoPerHour) + "," + kOneForC2});
  ASSERT_EQ(report["rule_sets"].size(), 2U);
  const json& second = report["rule_sets"][1];
  EXPECT_EQ(report["rule_sets"][0]["blocked"], 1);
  EXPECT_EQ(second["version"], 7);
  EXPECT_EQ(second["impressions"], 6);
  EXPECT_EQ(second["shown"], 4);
  EXPECT_EQ(second["blocked"], 2);
  EXPECT_EQ(second["rules"][0]["blocked"], 1);
  EXPECT_EQ(second["rules"][1]["blocked"], 1);
  EXPECT_EQ(second["reach"], 2);
  EXPECT_EQ(second["campaigns"][0]["id"], "c1");
  EXPECT_EQ(second["campaigns"][1]["shown"], 2);
  EXPECT_EQ(second["campaigns"][1]["reach_before"], 2);
}

TEST(Simulate, FrequenciesBeforeAndAfterCountUsersAndPairs) {
  std::string log = "user_id,campaign_id,timestamp\n";
  for (int i = 0; i < 12; ++i) log += "u1,c1," + std::to_string(1'700'000'000 + i) + "\n";
  const json set =
      simulated(log + "u1,c2,1700000000\nu2,c1,1700000000\n", {kTwoPerHour})["rule_sets"][0];
  ASSERT_EQ(set["per_user"].size(), 6U) << "1, 2, 3, 4–5, 6–10, 11–20";
  EXPECT_EQ(set["per_user"][5], json::parse(R"({"from":11,"to":20,"users_before":1,"users":0})"));
  EXPECT_EQ(set["per_user"][2], json::parse(R"({"from":3,"to":3,"users_before":0,"users":1})"));
  EXPECT_EQ(set["reach_at_least"][0],
            json::parse(R"({"impressions":1,"users_before":2,"users":2})"));
  EXPECT_EQ(set["reach_at_least"][2],
            json::parse(R"({"impressions":3,"users_before":1,"users":1})"));
  EXPECT_EQ(set["per_user"][0]["users"], 1);
  EXPECT_EQ(set["per_user_and_campaign"][0]["pairs_before"], 2);
  EXPECT_EQ(set["per_user_and_campaign"][1]["pairs"], 1);
}

TEST(Simulate, UserWhoIsShownNothingIsNotReached) {
  const json set = simulated(
      "user_id,campaign_id,timestamp\nu1,c1,1700000000\nu2,c2,1700000000\n",
      {R"({"id":"off","scope":"campaign","target":"c1","limit":0,"window":{"kind":"lifetime"}})"})
      ["rule_sets"][0];
  EXPECT_EQ(set["reach_before"], 2);
  EXPECT_EQ(set["reach"], 1);
}

TEST(Simulate, CampaignsOfEqualSizeStandById) {
  // c has two impressions, a and b one each, in either order.
  for (const char* log : {"user_id,campaign_id,timestamp\n"
                          "u1,b,1700000000\nu1,a,1700000001\nu1,c,1700000002\nu1,c,1700000003\n",
                          "user_id,campaign_id,timestamp\n"
                          "u1,c,1700000002\nu1,c,1700000003\nu1,a,1700000001\nu1,b,1700000000\n"}) {
    const json set = simulated(log, {""})["rule_sets"][0];
    EXPECT_EQ(set["campaigns"][0]["id"], "c");
    EXPECT_EQ(set["campaigns"][1]["id"], "a");
    EXPECT_EQ(set["campaigns"][2]["id"], "b");
  }
}

TEST(Simulate, ShadowRulesBlockNothingAndAreCounted) {
  const json set = simulated(
      "user_id,campaign_id,timestamp\nu1,c1,1700000000\nu1,c1,1700000001\nu1,c1,1700000002\n",
      {R"({"id":"s","scope":"campaign","target":"c1","limit":1,"mode":"shadow",
           "window":{"kind":"sliding","length":"1h"}})"})["rule_sets"][0];
  EXPECT_EQ(set["blocked"], 0);
  EXPECT_EQ(set["shadow_blocked"], 2);
}

TEST(Simulate, HardRulesBlockAsSoftOnesAndAreNamed) {
  const json set =
      simulated("user_id,campaign_id,timestamp\nu1,c1,1700000000\nu1,c1,1700000001\n",
                {R"({"id":"h","scope":"campaign","target":"c1","limit":1,"enforcement":"hard",
           "window":{"kind":"sliding","length":"1h"}})"})["rule_sets"][0];
  EXPECT_EQ(set["blocked"], 1);
  EXPECT_TRUE(set["rules"][0]["description"].get<std::string>().ends_with(", hard"));
}

TEST(Simulate, ClickOfABlockedImpressionDidNotHappen) {
  const json set = simulated(
      R"({"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"a"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000001,"imp_id":"b"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000002,"imp_id":"b","type":"click"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700007000,"imp_id":"c"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700007001,"imp_id":"c","type":"click"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700014000,"imp_id":"d"}
)",
      {R"({"id":"one","scope":"campaign","target":"c1","limit":1,"window":{"kind":"sliding","length":"1h"}},
          {"id":"clicked","scope":"campaign","target":"c1","event_type":"click","limit":1,
           "window":{"kind":"lifetime"}})"})["rule_sets"][0];
  EXPECT_EQ(set["follow_ups_blocked"], 1);
  EXPECT_EQ(set["blocked"], 2);
  for (const json& rule : set["rules"]) EXPECT_EQ(rule["blocked"], 1) << rule;
}

TEST(Simulate, ErasureForgetsWhatCameBefore) {
  const json set = simulated(
      R"({"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"a"}
{"user_id":"u1","type":"erasure","timestamp":1700000005,"event_id":"e"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000010,"imp_id":"b"}
)",
      {R"({"id":"one","scope":"user","limit":1,"window":{"kind":"lifetime"}})"})["rule_sets"][0];
  EXPECT_EQ(set["blocked"], 0);
}

TEST(Simulate, TextSaysInWordsWhatTheRulesDo) {
  const File log(
      "user_id,campaign_id,timestamp\nu1,c1,1700000000\nu1,c1,1700000001\nu1,c1,1700000002\n");
  const File rules(rules_json(kTwoPerHour));
  const Ran ran = run({"simulate", "--log", log.path(), "--rules", rules.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out,
              AllOf(HasSubstr("33.33 % of the impressions (1 of 3) would not have been shown"),
                    HasSubstr("at most 2 impressions of each campaign in any 1 hour")));
}

TEST(Simulate, PageNeedsNothingFromElsewhereAndEscapesNames) {
  const File log(
      "user_id,campaign_id,timestamp\nu1,\"<b>&\"\"c\",1700000000\nu1,\"<b>&\"\"c\",1700000001\n");
  const File rules(rules_json(
      R"({"id":"</script><!--<script>","scope":"user","limit":1,"window":{"kind":"sliding","length":"1h"}})"));
  const File page("");
  const Ran ran =
      run({"simulate", "--log", log.path(), "--rules", rules.path(), "--html", page.path()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string html = content_of(page);
  EXPECT_THAT(html, AllOf(StartsWith("<!DOCTYPE html>"), EndsWith("</html>\n"),
                          HasSubstr("default-src 'none'"), Not(HasSubstr("src=")),
                          Not(HasSubstr("href=")), Not(HasSubstr("url("))));
  // All markup is the page's own.
  EXPECT_EQ(report_text(html).find('<'), std::string::npos) << report_text(html);
  const json set = json::parse(report_text(html))["rule_sets"][0];
  EXPECT_EQ(set["rules"][0]["id"], "</script><!--<script>");
  EXPECT_EQ(set["campaigns"][0]["id"], "<b>&\"c");
}

TEST(Simulate, PageHasTheReportForPeople) {
  std::string text = "user_id,campaign_id,timestamp\nno event\n";
  std::string caps = R"({"id":"r0","scope":"user","limit":1,
                         "window":{"kind":"sliding","length":"1h"}})";
  for (int i = 0; i < 1'002; ++i) {
    text += fmt::format("u1,c{},1700000000\n", i);
    caps += fmt::format(R"(,{{"id":"other{}","scope":"campaign","target":"c{}","limit":5,
                            "window":{{"kind":"sliding","length":"1h"}}}})",
                        i, i);
  }
  const File log(text);
  const File rules(rules_json(caps));
  const File page("");
  const Ran ran = run({"simulate", "--json", "--log", log.path(), "--rules", rules.path(), "--cpm",
                       "2", "--html", page.path()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  json expected = json::parse(ran.out);
  expected["log"].erase("rejections");
  expected["log"]["sources"] = {std::filesystem::path(log.path()).filename().string()};
  json& set = expected["rule_sets"][0];
  set["rules"].erase(set["rules"].begin() + 1'000, set["rules"].end());
  set["rule_count"] = 1'003;
  set["blocking_rule_count"] = 1;
  set["campaign_count"] = 1'002;
  set["advertiser_count"] = 0;
  EXPECT_EQ(json::parse(report_text(content_of(page))), expected);
}

TEST(Simulate, PageIsValidUtf8WhateverTheIdsAre) {
  const File log(
      "user_id,campaign_id,timestamp\nu1,c\xE9\xFF,1700000000\nu1,\xC3\xA9,1700000000\n");
  const File rules(rules_json(kTwoPerHour));
  const File page("");
  ASSERT_EQ(
      run({"simulate", "--log", log.path(), "--rules", rules.path(), "--html", page.path()}).code,
      0);
  const std::string html = content_of(page);
  EXPECT_EQ(json(html).dump().empty(), false) << "dump() throws where it is not UTF-8";
  EXPECT_THAT(html, AllOf(HasSubstr("c\xEF\xBF\xBD\xEF\xBF\xBD"), HasSubstr("\xC3\xA9")));
}

TEST(Simulate, ASweepComparesLimits) {
  std::string text = "user_id,campaign_id,timestamp\n";
  for (int i = 0; i < 5; ++i) text += "u1,c1," + std::to_string(1'700'000'000 + i) + "\n";
  const File log(text);
  const File rules(rules_json(kTwoPerHour));
  const auto sweep = [&](const std::string& what) {
    return run(
        {"simulate", "--json", "--log", log.path(), "--rules", rules.path(), "--sweep", what});
  };
  const json sets = json::parse(sweep("limit=1..3").out)["rule_sets"];
  ASSERT_EQ(sets.size(), 3U);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    EXPECT_EQ(sets[i]["sweep_limit"], i + 1);
    EXPECT_EQ(sets[i]["shown"], i + 1);
  }
  for (const char* wrong :
       {"limit=3..1", "limit=1", "limit=1..100", "window=1..3", "x:limit=1..3"}) {
    const Ran ran = sweep(wrong);
    EXPECT_EQ(ran.code, 2) << wrong;
    EXPECT_THAT(ran.err, HasSubstr("--sweep: ")) << wrong;
  }
  const Ran ran =
      run({"simulate", "--log", log.path(), "--rules", rules.path(), "--sweep", "limit=1..3"});
  EXPECT_THAT(ran.out, HasSubstr("limit 2"));
}

TEST(Simulate, AdvertisersDaysNamesAndTheTimeZone) {
  // 23:30 on the 14th and 00:30 on the 15th in Berlin; both on the 14th in UTC.
  const File log("user_id,campaign_id,timestamp\nu1,c1,1700001000\nu1,c2,1700004600\n");
  const File rules(
      R"({"name": "The new caps", "version": 1, "rules": [{"id": "one", "scope": "user", "limit": 1,
          "window": {"kind": "sliding", "length": "24h"}}],
          "campaigns": [{"id": "c1", "advertiser_id": "a"}, {"id": "c2", "advertiser_id": "a"}]})");
  const auto report = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command{"simulate", "--json",  "--log",
                                     log.path(), "--rules", rules.path()};
    command.insert(command.end(), options.begin(), options.end());
    return run(command);
  };
  const json utc = json::parse(report({}).out)["rule_sets"][0];
  EXPECT_EQ(utc["name"], "The new caps");
  EXPECT_EQ(utc["days"].size(), 1U);
  EXPECT_EQ(
      utc["advertisers"][0],
      json::parse(
          R"({"id":"a","name":null,"impressions":2,"shown":1,"blocked":1,"reach_before":1,"reach":1})"));
  const json berlin = json::parse(report({"--time-zone", "Europe/Berlin"}).out)["rule_sets"][0];
  ASSERT_EQ(berlin["days"].size(), 2U);
  EXPECT_EQ(berlin["days"][0], json::parse(R"({"day":"2023-11-14","impressions":1,"shown":1})"));
  EXPECT_EQ(berlin["days"][1], json::parse(R"({"day":"2023-11-15","impressions":1,"shown":0})"));
  EXPECT_EQ(report({"--time-zone", "Mars/Olympus"}).code, 2);
}

TEST(Simulate, CsvHasEveryCampaignOfEveryRuleSet) {
  const File log("user_id,campaign_id,timestamp\nu1,c1,1700000000\nu1,\"a,\"\"b\",1700000000\n");
  const File rules(rules_json(kTwoPerHour));
  const File csv("");
  ASSERT_EQ(run({"simulate", "--log", log.path(), "--rules", rules.path(), "--sweep", "limit=1..2",
                 "--csv", csv.path()})
                .code,
            0);
  std::stringstream text;
  text << std::ifstream(csv.path()).rdbuf();
  EXPECT_EQ(
      text.str(),
      "rule_set,campaign_id,advertiser_id,impressions,shown,blocked,users_before,users_reached,"
      "campaign_name,blocked_worth\r\n"
      "limit 1,\"a,\"\"b\",,1,1,0,1,1,,\r\nlimit 1,c1,,1,1,0,1,1,,\r\n"
      "limit 2,\"a,\"\"b\",,1,1,0,1,1,,\r\nlimit 2,c1,,1,1,0,1,1,,\r\n");
}

TEST(Simulate, NamesStandBesideIdsAndLostImpressionsHaveAPrice) {
  std::string text = "user_id,campaign_id,timestamp\n";
  for (int i = 0; i < 5; ++i) text += "u1,c1," + std::to_string(1'700'000'000 + i) + "\n";
  const File log(text);
  const File rules(rules_json(kTwoPerHour));
  const File csv_names("id;name\r\nc1;Sale, \"\"summer\"\" <b>\r\n");
  const File json_names(R"({"c1": "Sale, \"summer\" <b>"})");
  const auto report = [&](const std::vector<std::string>& options) {
    std::vector<std::string> command{"simulate", "--log", log.path(), "--rules", rules.path()};
    command.insert(command.end(), options.begin(), options.end());
    return run(command);
  };
  const File page("");
  const File csv("");
  const Ran ran = report(
      {"--names", json_names.path(), "--cpm", "1500", "--html", page.path(), "--csv", csv.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_THAT(ran.out, AllOf(HasSubstr("Sale, \"summer\" <b> (c1)"), HasSubstr("4.50")));
  const json shown = json::parse(report_text(content_of(page)));
  EXPECT_EQ(shown["log"]["cpm"], 1500);
  EXPECT_EQ(shown["rule_sets"][0]["campaigns"][0]["name"], "Sale, \"summer\" <b>");
  std::stringstream rows;
  rows << std::ifstream(csv.path()).rdbuf();
  EXPECT_THAT(rows.str(), HasSubstr(",c1,,5,2,3,1,1,\"Sale, \"\"summer\"\" <b>\",4.50\r\n"));
  const json set = json::parse(report({"--json", "--names", csv_names.path()}).out)["rule_sets"][0];
  EXPECT_EQ(set["campaigns"][0]["name"], "Sale, summer <b>");
  EXPECT_EQ(set["blocked_worth"], nullptr);
}

TEST(Simulate, NamesThatCannotBeReadAreNamed) {
  const File log("user_id,campaign_id,timestamp\nu1,c1,1700000000\n");
  const File rules(rules_json(kTwoPerHour));
  const File no_header("c1,Sale\n");
  const File short_row("id,name\nc1\n");
  const File list("{\"c1\": 3}");
  const std::vector<std::pair<std::string, std::string>> mistakes = {
      {"/nowhere/names.csv", "cannot read /nowhere/names.csv: No such file or directory"},
      {no_header.path(), "the header line lacks id or name"},
      {short_row.path(), "line 2: 1 fields, the header has 2"},
      {list.path(), "the name of c1 is not a string"}};
  for (const auto& [path, why] : mistakes) {
    const Ran ran =
        run({"simulate", "--log", log.path(), "--rules", rules.path(), "--names", path});
    EXPECT_EQ(ran.code, 1) << path;
    EXPECT_THAT(ran.err, AllOf(HasSubstr("--names: "), HasSubstr(path), HasSubstr(why)));
  }
  EXPECT_EQ(run({"simulate", "--log", log.path(), "--rules", rules.path(), "--cpm", "-1"}).code, 2);
}

TEST(Simulate, PageThatCannotBeWrittenIsAnError) {
  const File log("user_id,campaign_id,timestamp\nu1,c1,1700000000\n");
  const File rules(rules_json(kTwoPerHour));
  const Ran ran = run(
      {"simulate", "--log", log.path(), "--rules", rules.path(), "--html", "/nowhere/page.html"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.err, HasSubstr("--html: /nowhere/page.html"));
}

// Heavy users' ledgers are trimmed on the way. Against a model that forgets nothing.
TEST(Simulate, HeavyUsersAreJudgedAsIfNothingWereTrimmed) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  constexpr std::int64_t kDay = 86'400;
  std::map<std::string, std::vector<std::int64_t>> shown;
  std::vector<std::int64_t> all_shown;
  std::string log = "user_id,campaign_id,timestamp\n";
  std::uint64_t blocked = 0;
  std::int64_t now = 1'700'000'000;
  for (int i = 0; i < 6'000; ++i) {
    now += static_cast<std::int64_t>(random() % 600);
    const std::string campaign = "c" + std::to_string(random() % 7);
    log += "bot," + campaign + "," + std::to_string(now) + "\n";
    const auto since = [](const std::vector<std::int64_t>& times, std::int64_t from) {
      return times.end() - std::upper_bound(times.begin(), times.end(), from);
    };
    if (since(shown[campaign], now - kDay) >= 60 || since(all_shown, now - 7 * kDay) >= 1'500) {
      ++blocked;
      continue;
    }
    shown[campaign].push_back(now);
    all_shown.push_back(now);
  }
  const json report = simulated(
      log,
      {R"({"id":"c","scope":"campaign","target":"*","limit":60,"window":{"kind":"sliding","length":"24h"}},
               {"id":"u","scope":"user","limit":1500,"window":{"kind":"sliding","length":"7d"}})"});
  EXPECT_GT(blocked, 0U);
  EXPECT_EQ(report["rule_sets"][0]["blocked"], blocked);
}

TEST(Simulate, RealLogUnderThreePerDayBlocksThePublishedFigure) {
  const auto rows = test_log::impression_log();
  const auto figures = test_log::count_figures(rows);
  std::string text = "user_id,campaign_id,creative_id,timestamp\n";
  for (const auto& row : rows) {
    text += row.user + "," + row.campaign + "," + row.creative + "," +
            std::to_string(row.unix_seconds) + "\n";
  }
  const File generated(text);
  const std::string log =
      test_log::has_real_log() ? test_log::real_log_file().string() : generated.path();
  const File rules(rules_json(
      R"({"id":"three","scope":"campaign","target":"*","limit":3,"window":{"kind":"sliding","length":"24h"}})"));
  const Ran ran = run({"simulate", "--json", "--log", log, "--rules", rules.path()});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const json set = json::parse(ran.out)["rule_sets"][0];
  EXPECT_EQ(set["impressions"], 40'000);
  EXPECT_EQ(set["blocked"], figures.blocked);
  if (test_log::has_real_log()) {
    EXPECT_EQ(set["blocked"], 10'958);
    EXPECT_THAT(set["summary"].get<std::string>(), HasSubstr("27.40 %"));
  }
}

}  // namespace simulate_replay_test
}  // namespace fcap::cli_test
