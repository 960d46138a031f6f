// fcap check --rules FILE --events FILE, and fcap rules: no server is there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "command.h"
#include "rule_text/rule_json.h"
#include "rule_text/snapshot.h"

namespace fcap::cli_test {
namespace offline_test {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr const char* kRules = R"({
  "version": 12,
  "rules": [
    {"id": "three", "scope": "campaign", "target": "c1", "event_type": "impression", "limit": 3,
     "window": {"kind": "sliding", "length": "24h"}},
    {"id": "pair", "scope": "user", "event_type": "click", "limit": 1,
     "window": {"kind": "sliding", "length": "1h"}}
  ],
  "campaigns": [{"id": "c1", "advertiser_id": "a1"}]
})";

// 1700000000 is 1,700,000,000,000 ms. One event is there twice, one line is not an event.
constexpr const char* kEvents =
    R"({"user_id":"u1","campaign_id":"c1","timestamp":1700000200,"imp_id":"i3"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
{"user_id":"u2","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
not an event
{"user_id":"u1","campaign_id":"c1","timestamp":1700000100,"imp_id":"i2"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
)";

// What the answer's first candidate says of one rule.
json rule_of(const json& answer, const std::string& id) {
  for (const json& rule : answer["verdicts"][0]["rules"]) {
    if (rule["id"] == id) return rule;
  }
  return {};
}

Ran check(const std::string& questions, const char* events = kEvents) {
  const File rules(kRules);
  const File log(events);
  return run({"check", "--rules", rules.path(), "--events", log.path()}, questions);
}

TEST(OfflineCheck, CountsEachEventOnceWhateverTheOrder) {
  const Ran ran = check(
      R"({"user":"u1","candidates":["c1","c2/cr9"],"at":1700000300000}
{"user":"u2","candidates":["c1"],"at":1700000300000}
)");
  EXPECT_EQ(ran.code, 0) << ran.err;
  ASSERT_THAT(ran.lines(), SizeIs(2));
  const json first = json::parse(ran.lines()[0]);
  EXPECT_EQ(first["user"], "u1");
  EXPECT_EQ(first["rule_set_version"], 12);
  const json& capped = first["verdicts"][0];
  EXPECT_EQ(capped["candidate"], "c1");
  EXPECT_EQ(capped["allowed"], false);
  EXPECT_EQ(capped["rule"], "three");
  EXPECT_EQ(capped["count"], 3);
  EXPECT_EQ(capped["limit"], 3);
  EXPECT_EQ(capped["eligible_at"], 1'700'086'400'000);
  ASSERT_THAT(capped["rules"], SizeIs(2));
  EXPECT_EQ(first["verdicts"][1]["candidate"], "c2/cr9");
  EXPECT_EQ(first["verdicts"][1]["allowed"], true);
  EXPECT_EQ(first["verdicts"][1]["eligible_at"], 1'700'000'300'000);
  ASSERT_THAT(first["verdicts"][1]["rules"], SizeIs(1));
  EXPECT_EQ(first["verdicts"][1]["rules"][0]["id"], "pair");
  EXPECT_EQ(json::parse(ran.lines()[1])["verdicts"][0]["allowed"], true);
  EXPECT_THAT(ran.err, HasSubstr("1 of 6"));
}

TEST(OfflineCheck, LeavesOutWhatIsLaterThanTheQuestion) {
  const Ran ran = check(R"({"user":"u1","candidates":["c1"],"at":1700000150000})");
  const json answer = json::parse(ran.out);
  EXPECT_EQ(answer["verdicts"][0]["allowed"], true);
  EXPECT_EQ(rule_of(answer, "three")["count"], 2);
  EXPECT_EQ(answer["as_of"]["left_out"], 1);
  EXPECT_EQ(answer["as_of"]["arrival_times"], "unknown");
}

TEST(OfflineCheck, LineThatFailsDoesNotStopTheRest) {
  const Ran ran = check(
      "nonsense\n\n"
      R"({"id":9,"user":"u1","candidates":["c1"],"at":1700000300000})");
  EXPECT_EQ(ran.code, 1);
  ASSERT_THAT(ran.lines(), SizeIs(2));
  EXPECT_EQ(json::parse(ran.lines()[0])["line"], 1);
  EXPECT_EQ(json::parse(ran.lines()[0])["error"], "not JSON");
  EXPECT_EQ(json::parse(ran.lines()[1])["id"], 9);
  EXPECT_EQ(json::parse(ran.lines()[1])["verdicts"][0]["allowed"], false);
}

TEST(OfflineCheck, NullUserIsNotLookedUp) {
  const Ran ran = check(
      R"({"user":"00000000-0000-0000-0000-000000000000","candidates":["c1"],"at":1700000300000})",
      R"({"user_id":"00000000-0000-0000-0000-000000000000","campaign_id":"c1","timestamp":1700000000,"imp_id":"1"}
)");
  const json answer = json::parse(ran.out);
  EXPECT_EQ(answer["reason"], "no_user");
  EXPECT_EQ(answer["verdicts"][0]["allowed"], true);
}

TEST(OfflineCheck, ErasureForgetsWhatCameBefore) {
  const Ran ran = check(R"({"user":"u1","candidates":["c1"],"at":1700000300000})",
                        R"({"user_id":"u1","campaign_id":"c1","timestamp":1700000200,"imp_id":"i3"}
{"user_id":"u1","type":"erasure","timestamp":1700000150,"event_id":"e1"}
{"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1"}
)");
  EXPECT_EQ(rule_of(json::parse(ran.out), "three")["count"], 1) << ran.err;
}

TEST(OfflineCheck, OneQuestionMayStandOnTheCommandLine) {
  const File rules(kRules);
  const File log(kEvents);
  const Ran text = run({"check", "u1", "c1", "--rules", rules.path(), "--events", log.path(),
                        "--at", "1700000300000"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("capped   by rule \"three\", 3 of 3"));
  const Ran earlier = run({"check", "u1", "c1", "--json", "--rules", rules.path(), "--events",
                           log.path(), "--at", "2023-11-14T22:15:50Z"});
  EXPECT_EQ(json::parse(earlier.out)["as_of"]["left_out"], 1) << earlier.err;
}

TEST(OfflineCheck, EmptyUserIsNoUser) {
  const File rules(kRules);
  const File log(kEvents);
  const Ran ran =
      run({"check", "", "c1", "--json", "--rules", rules.path(), "--events", log.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out)["reason"], "no_user");
  const Ran line = check(R"({"user":null,"candidates":["c1"]})");
  EXPECT_EQ(line.code, 0) << line.err;
  EXPECT_EQ(json::parse(line.out)["reason"], "no_user");
}

TEST(OfflineCheck, InstantThatLooksLikeSecondsIsWarnedOfOnce) {
  const std::string question = R"({"user":"u1","candidates":["c1"],"at":1700000300})";
  const Ran ran = check(question + "\n" + question + "\n");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(json::parse(ran.lines()[0])["at"], 1'700'000'300);
  EXPECT_THAT(ran.err, HasSubstr("line 1: \"at\": 1700000300 is taken as milliseconds"));
  EXPECT_THAT(ran.err, ::testing::Not(HasSubstr("line 2")));
  const File rules(kRules);
  const File log(kEvents);
  const Ran one = run(
      {"check", "u1", "c1", "--rules", rules.path(), "--events", log.path(), "--at", "1700000300"});
  EXPECT_THAT(one.err, HasSubstr("warning: --at: 1700000300 is taken as milliseconds"));
  EXPECT_THAT(one.out, HasSubstr("3 later entries were left out"));
}

TEST(OfflineExplain, GoesByEventsAndByLinesToo) {
  const File rules(kRules);
  const File log(kEvents);
  const std::vector<std::string> offline{"--rules", rules.path(), "--events", log.path()};
  std::vector<std::string> arguments{"explain", "u1", "c1", "--at", "1700000150000"};
  arguments.insert(arguments.end(), offline.begin(), offline.end());
  const Ran one = run(arguments);
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_THAT(one.out, HasSubstr("rule set version 12, time-zone data "));
  EXPECT_THAT(one.out, HasSubstr("2 counted since"));
  EXPECT_THAT(one.out, HasSubstr("1 later entry was left out"));
  arguments = {"explain"};
  arguments.insert(arguments.end(), offline.begin(), offline.end());
  const Ran lines = run(arguments, R"({"user":"u1","candidates":["c1"],"at":1700000300000})");
  EXPECT_EQ(lines.code, 0) << lines.err;
  const json answer = json::parse(lines.out);
  EXPECT_EQ(rule_of(answer, "three")["count"], 3);
  EXPECT_TRUE(answer["time_zone_data_version"].is_string());
}

TEST(Rules, JsonIsARulesFileAgain) {
  const File rules(kRules);
  const Ran ran = run({"rules", "--json", "--rules", rules.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const auto spec = rule_text::parse_rules_json(ran.out);
  ASSERT_TRUE(spec.ok()) << spec.status().text();
  EXPECT_EQ(spec.value().version, 12U);
  EXPECT_THAT(spec.value().rules, SizeIs(2));
  EXPECT_THAT(ran.err, HasSubstr(rules.path()));
}

TEST(Rules, TextNamesVersionSourceAndEachRule) {
  const File rules(kRules);
  const Ran ran = run({"rules", "--rules", rules.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* word : {"version 12", "three", "campaign c1", "1d", "pair", "click"}) {
    EXPECT_THAT(ran.out, HasSubstr(word));
  }
  EXPECT_THAT(ran.out, HasSubstr(rules.path()));
}

TEST(Rules, SnapshotIsReadWhereARulesFileIs) {
  const File file("");
  const auto spec = rule_text::parse_rules_json(kRules);
  ASSERT_TRUE(spec.ok());
  ASSERT_TRUE(rule_text::write_snapshot(file.path(), spec.value()).ok());
  EXPECT_EQ(run({"rules", "--rules", file.path()}).code, 0);
  EXPECT_EQ(run({"rules", "--snapshot", file.path()}).code, 0);
}

TEST(RulesCheck, MistakesExitWithOne) {
  const File good(kRules);
  EXPECT_EQ(run({"rules", "--check", "--rules", good.path()}).code, 0);
  const File wrong(R"({"version":1,"rules":[{"id":"r","scope":"campaign","target":"c","limit":1,
      "window":{"kind":"sliding","length":"400d"}}],"campaigns":[]})");
  const Ran ran = run({"rules", "--check", "--rules", wrong.path()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out, HasSubstr("error: "));
  const json report = json::parse(run({"rules", "--check", "--json", "--rules", wrong.path()}).out);
  EXPECT_EQ(report["ok"], false);
  EXPECT_EQ(report["errors"],
            json::array({"rule \"r\": window length 400d is more than the retention, 32d"}));
}

TEST(RulesCheck, ACampaignThatTheCatalogLacksIsWarnedOf) {
  const auto checked = [](const std::string& campaigns) {
    const File file(R"({"version":1,"rules":[{"id":"r","scope":"campaign","target":"c45","limit":1,
      "window":{"kind":"sliding","length":"4h"}},{"id":"all","scope":"campaign","target":"*","limit":9,
      "window":{"kind":"sliding","length":"4h"}}],"campaigns":[)" +
                    campaigns + "]}");
    const Ran ran = run({"rules", "--check", "--rules", file.path()});
    EXPECT_EQ(ran.code, 0) << ran.out;
    return ran.out;
  };
  EXPECT_THAT(checked(R"({"id":"c456"})"),
              HasSubstr("warning: 1 rule is for a campaign that the catalog does not have, such as "
                        "rule \"r\" for \"c45\""));
  EXPECT_THAT(checked(R"({"id":"c45"})"), ::testing::Not(HasSubstr("catalog does not have")));
  EXPECT_THAT(checked(""), ::testing::Not(HasSubstr("catalog does not have")))
      << "without a catalog";
}

TEST(RulesCheck, AllMistakesAreReportedAtOnceOnePerElement) {
  const File wrong(R"({"rules":[
    {"id":"a","scope":"campaign","target":"c1","limit":-3,"segment":"",
     "window":{"kind":"sliding","length":"33d"}},
    {"id":"b","scope":"user","target":"x","limit":3,
     "window":{"kind":"calendar","unit":"day","time_zone":"Nowhere/At_All"}},
    {"id":"b","scope":"campaign","limit":3,"window":{"kind":"calendar","unit":"day"}},
    {"id":"z","scope":"users","window":{"kind":"sliding","length":"1h"}}]})");
  const Ran ran = run({"rules", "--check", "--json", "--rules", wrong.path()});
  EXPECT_EQ(ran.code, 1);
  const json errors = json::parse(ran.out)["errors"];
  EXPECT_THAT(errors, SizeIs(8)) << errors.dump(1);
  for (const json& error : errors) {
    EXPECT_THAT(error.get<std::string>(), ::testing::StartsWith("rule")) << error;
  }
  for (const char* part :
       {".limit: must be", ".segment: must have", ".scope: must be", "more than the retention",
        "the user scope has no target", "target is empty", "more than once", "Nowhere/At_All"}) {
    EXPECT_THAT(errors.dump(), HasSubstr(part));
  }
}

}  // namespace offline_test
}  // namespace fcap::cli_test
