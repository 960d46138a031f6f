#include "rule_text/rule_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time_text.h"

namespace fcap::rule_text {
namespace rule_json_test {

using std::chrono::hours;
using ::testing::HasSubstr;

std::string failure_of(std::string_view json) {
  const Result<RuleSetSpec> parsed = parse_rules_json(json);
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(parsed.status().retryable());
  return parsed.status().text();
}

// A file with one rule that has these members besides an id.
std::string with_rule(const std::string& members) {
  return R"({"rules": [{"id": "r", )" + members + "}]}";
}

TEST(RuleJson, TheShortestRuleHasTheDefaults) {
  const auto parsed = parse_rules_json(R"({"rules": [
    {"id": "r1", "scope": "campaign", "target": "c1", "limit": 3,
     "window": {"kind": "sliding", "length": "24h"}}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value().version, 0U);
  ASSERT_EQ(parsed.value().rules.size(), 1U);
  const Rule& rule = parsed.value().rules.front();
  EXPECT_EQ(rule.id, "r1");
  EXPECT_EQ(rule.scope, Scope::kCampaign);
  EXPECT_EQ(rule.target, "c1");
  EXPECT_EQ(rule.event_type, EventType::kImpression);
  EXPECT_EQ(rule.limit, 3U);
  EXPECT_EQ(rule.window.kind, Window::Kind::kSliding);
  EXPECT_EQ(rule.window.length, hours{24});
  EXPECT_EQ(rule.segment, std::nullopt);
  EXPECT_EQ(rule.start, std::nullopt);
  EXPECT_EQ(rule.end, std::nullopt);
  EXPECT_EQ(rule.mode, Rule::Mode::kEnforce);
  EXPECT_EQ(rule.enforcement, Rule::Enforcement::kSoft);
}

TEST(RuleJson, ReadsEveryMember) {
  const auto parsed = parse_rules_json(R"({
    "version": 18446744073709551615, // comments are allowed: people write these files
    "rules": [
      {"id": "r1", "scope": "group", "target": "*", "event_type": "conversion", "limit": 4294967295,
       "window": {"kind": "calendar", "unit": "week", "time_zone": "Europe/Berlin",
                  "week_start": "sunday"},
       "segment": "vip", "start": "2026-03-01T00:00:00Z", "end": "2026-04-01T00:00:00+02:00",
       "mode": "shadow", "enforcement": "hard"}],
    "campaigns": [{"id": "c1", "advertiser_id": "a1", "groups": ["g1", "g2"], "deleted": true}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value().version, 18446744073709551615U);
  const Rule& rule = parsed.value().rules.at(0);
  EXPECT_EQ(rule.scope, Scope::kGroup);
  EXPECT_EQ(rule.target, "*");
  EXPECT_EQ(rule.event_type, EventType::kConversion);
  EXPECT_EQ(rule.limit, 4294967295U);
  EXPECT_EQ(rule.window.kind, Window::Kind::kCalendar);
  EXPECT_EQ(rule.window.unit, CalendarUnit::kWeek);
  EXPECT_EQ(rule.window.time_zone, "Europe/Berlin");
  EXPECT_EQ(rule.window.week_start, std::chrono::Sunday);
  EXPECT_EQ(rule.segment, "vip");
  EXPECT_EQ(rule.start, base::parse_instant("2026-03-01T00:00:00Z"));
  EXPECT_EQ(rule.end, base::parse_instant("2026-03-31T22:00:00Z"));
  EXPECT_EQ(rule.mode, Rule::Mode::kShadow);
  EXPECT_EQ(rule.enforcement, Rule::Enforcement::kHard);
  const Campaign& campaign = parsed.value().campaigns.at(0);
  EXPECT_EQ(campaign.id, "c1");
  EXPECT_EQ(campaign.advertiser_id, "a1");
  EXPECT_EQ(campaign.groups, (std::vector<std::string>{"g1", "g2"}));
  EXPECT_TRUE(campaign.deleted);
}

TEST(RuleJson, AWeekStartIsIgnoredByOtherUnits) {
  for (const char* unit : {"hour", "day", "month"}) {
    const auto parsed = parse_rules_json(with_rule(
        std::string(R"("scope": "user", "window": {"kind": "calendar", "week_start": "sunday", )") +
        R"("unit": ")" + unit + "\"}"));
    ASSERT_TRUE(parsed.ok()) << parsed.status().text();
    EXPECT_EQ(parsed.value().rules.at(0).window.week_start, std::chrono::Monday);
  }
}

TEST(RuleJson, WhatIsSoundIsGivenBesideTheMistakes) {
  const std::string window = R"("window": {"kind": "lifetime"}})";
  RuleSetSpec sound;
  const auto parsed = parse_rules_json(
      R"({"rules": [{"id": "whole", "scope": "user", )" + window +
          R"(, {"id": "no limit", "scope": "user", "limit": -1, "segment": "", )" + window +
          R"(, {"id": "no scope", )" + window + R"(], "campaigns": [{"id": "c"}, {"id": 1}]})",
      sound);
  EXPECT_FALSE(parsed.ok());
  ASSERT_EQ(sound.rules.size(), 2U);
  EXPECT_EQ(sound.rules[0].id, "whole");
  EXPECT_EQ(sound.rules[1].id, "no limit");
  EXPECT_EQ(sound.rules[1].segment, std::nullopt);
  EXPECT_EQ(sound.campaigns.size(), 1U);
}

TEST(RuleJson, AMissingOrNullLimitMeansNotCappedAndZeroMeansNever) {
  const std::string window = R"(, "scope": "user", "window": {"kind": "lifetime"})";
  EXPECT_EQ(parse_rules_json(with_rule(R"("limit": null)" + window)).value().rules.at(0).limit,
            std::nullopt);
  EXPECT_EQ(parse_rules_json(with_rule(R"("mode": "enforce")" + window)).value().rules.at(0).limit,
            std::nullopt);
  EXPECT_EQ(parse_rules_json(with_rule(R"("limit": 0)" + window)).value().rules.at(0).limit, 0U);
}

TEST(RuleJson, AnEmptyObjectIsAnEmptyRuleSet) {
  const auto parsed = parse_rules_json("{}");
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed.value().rules.empty());
  EXPECT_TRUE(parsed.value().campaigns.empty());
}

struct Mistake {
  std::string json;
  std::string said;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
  *out << mistake.json;
}

class RuleJsonMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(RuleJsonMistake, IsReportedWithItsPlace) {
  EXPECT_THAT(failure_of(GetParam().json), HasSubstr(GetParam().said)) << GetParam().json;
}

const std::string sliding_1h = R"("window": {"kind": "sliding", "length": "1h"})";

INSTANTIATE_TEST_SUITE_P(
    OfTheWhole, RuleJsonMistake,
    ::testing::Values(Mistake{"", "parse error"}, Mistake{"{", "parse error"},
                      Mistake{"{} {}", "parse error"}, Mistake{"[]", "the whole must be an object"},
                      Mistake{"[[{}]]", "must be an object"},
                      Mistake{"null", "the whole must be an object"},
                      Mistake{R"({"rule": []})", ".rule: is not known here"},
                      Mistake{R"({"rules": {"a": {"b": 1}}})", ".rules: must be an array"},
                      Mistake{R"({"rules": 3})", ".rules: must be an array"},
                      Mistake{R"({"rules": [3]})", "rules[0]: must be an object"},
                      Mistake{R"({"rules": [[]]})", "rules[0]: must be an object"},
                      Mistake{R"({"version": -1})", ".version: must be a whole number"},
                      Mistake{R"({"version": "1"})", ".version: must be a whole number"},
                      Mistake{R"({"version": 1, "version": 2})", ".version: is given twice"},
                      Mistake{R"({"rules": [], "rules": []})", ".rules: is given twice"},
                      Mistake{"{\"rules\": [{\"id\": \"\xff\"}]}", "parse error"},
                      Mistake{R"({"rules": [[[[[[[[[[]]]]]]]]]]})", "nested too deeply"}));

INSTANTIATE_TEST_SUITE_P(
    OfARule, RuleJsonMistake,
    ::testing::Values(
        Mistake{R"({"rules": [{"scope": "user", )" + sliding_1h + "}]}", "rules[0].id: is missing"},
        Mistake{R"({"rules": [{"id": "", "scope": "user", )" + sliding_1h + "}]}",
                "1 to 256 bytes"},
        Mistake{R"({"rules": [{"id": ")" + std::string(257, 'x') + "\"}]}", "1 to 256 bytes"},
        Mistake{R"({"rules": [{"id": 7}]})", "rules[0].id: must be a string"},
        Mistake{with_rule(sliding_1h), R"(rules[0] ("r").scope: is missing)"},
        Mistake{with_rule(R"("scope": "users", )" + sliding_1h),
                "scope: must be one of campaign, creative, advertiser, group, user"},
        Mistake{with_rule(R"("scope": "user", "target": "", )" + sliding_1h), ".target: must have"},
        Mistake{with_rule(R"("scope": "user")"), ".window: is missing"},
        Mistake{with_rule(R"("scope": "user", "window": "1h")"), ".window: must be an object"},
        Mistake{with_rule(R"("scope": "user", "limt": 3, )" + sliding_1h), ".limt: is not known"},
        Mistake{with_rule(R"("scope": "user", "limit": 3, "limit": 4, )" + sliding_1h),
                "rules[0].limit: is given twice"},
        Mistake{with_rule(R"("scope": "user", "limit": -1, )" + sliding_1h), ".limit: must be"},
        Mistake{with_rule(R"("scope": "user", "limit": 1.5, )" + sliding_1h), ".limit: must be"},
        Mistake{with_rule(R"("scope": "user", "limit": 4294967296, )" + sliding_1h),
                ".limit: must"},
        Mistake{with_rule(R"("scope": "user", "limit": "3", )" + sliding_1h), ".limit: must be"},
        Mistake{with_rule(R"("scope": "user", "limit": true, )" + sliding_1h), ".limit: must be"},
        Mistake{with_rule(R"("scope": "user", "event_type": "view", )" + sliding_1h),
                ".event_type"},
        Mistake{with_rule(R"("scope": "user", "mode": "off", )" + sliding_1h), ".mode: must be"},
        Mistake{with_rule(R"("scope": "user", "enforcement": 1, )" + sliding_1h), ".enforcement"},
        Mistake{with_rule(R"("scope": "user", "start": "tomorrow", )" + sliding_1h),
                ".start: must"},
        Mistake{with_rule(R"("scope": "user", "end": 1700000000, )" + sliding_1h),
                ".end: must be"}));

std::string with_window(const std::string& window) {
  return with_rule(R"("scope": "user", "window": )" + window);
}

INSTANTIATE_TEST_SUITE_P(
    OfAWindow, RuleJsonMistake,
    ::testing::Values(
        Mistake{with_window("{}"), ".window.kind: is missing"},
        Mistake{with_window(R"({"kind": "tumbling"})"), ".window.kind: must be one of sliding"},
        Mistake{with_window(R"({"kind": "sliding"})"), ".window.length: is missing"},
        Mistake{with_window(R"({"kind": "sliding", "length": "0s"})"), ".window.length: must be"},
        Mistake{with_window(R"({"kind": "fixed", "length": 3600})"), ".window.length: must be"},
        Mistake{with_window(R"({"kind": "sliding", "length": "1h", "unit": "day"})"),
                ".window.unit: is not known here"},
        Mistake{with_window(R"({"kind": "lifetime", "length": "1h"})"),
                ".window.length: is not known here"},
        Mistake{with_window(R"({"kind": "calendar"})"), ".window.unit: is missing"},
        Mistake{with_window(R"({"kind": "calendar", "unit": "year"})"), ".window.unit: must be"},
        Mistake{with_window(R"({"kind": "calendar", "unit": "day", "week_start": "blue"})"),
                ".window.week_start: must be"},
        Mistake{with_window(R"({"kind": "lifetime", "week_start": "monday"})"),
                ".window.week_start: is not known here"},
        Mistake{with_window(R"({"kind": "calendar", "unit": "week", "week_start": 1})"),
                ".window.week_start: must be"},
        Mistake{with_window(R"({"kind": "calendar", "unit": "day", "time_zone": ""})"),
                ".window.time_zone: must have"}));

INSTANTIATE_TEST_SUITE_P(
    OfACampaign, RuleJsonMistake,
    ::testing::Values(
        Mistake{R"({"campaigns": [{}]})", "campaigns[0].id: is missing"},
        Mistake{R"({"campaigns": [{"id": "c", "groups": "g"}]})", ".groups: must be an array"},
        Mistake{R"({"campaigns": [{"id": "c", "groups": [""]}]})", ".groups: must be strings"},
        Mistake{R"({"campaigns": [{"id": "c", "groups": [1]}]})", ".groups: must be strings"},
        Mistake{R"({"campaigns": [{"id": "c", "deleted": 0}]})", ".deleted: must be true or"},
        Mistake{R"({"campaigns": [{"id": "c", "advertiser_id": 1}]})", ".advertiser_id: must be"},
        Mistake{R"({"campaigns": [{"id": "c", "name": "x"}]})", ".name: is not known here"}));

TEST(RuleJson, ReportsAllMistakesAtOnce) {
  const std::string said = failure_of(R"({"rulez": 1,
    "rules": [{"id": "good", "scope": "user", "window": {"kind": "lifetime"}},
              {"id": "bad", "scope": "nobody", "limit": -3, "window": {"kind": "lifetime"}}],
    "campaigns": [{"advertiser": "a"}]})");
  for (const char* part :
       {".rulez: is not known", R"(rules[1] ("bad").scope)", R"(rules[1] ("bad").limit)",
        "campaigns[0].id: is missing", "campaigns[0].advertiser: is not known"}) {
    EXPECT_THAT(said, HasSubstr(part));
  }
  EXPECT_THAT(said, Not(HasSubstr("good")));
}

TEST(RuleJson, ListsOnlyTheFirstHundredMistakes) {
  std::string json = R"({"rules": [1)";
  for (int i = 1; i < 150; ++i) json += ",1";
  const std::string said = failure_of(json + "]}");
  EXPECT_THAT(said, HasSubstr("rules[99]"));
  EXPECT_THAT(said, Not(HasSubstr("rules[100]")));
  EXPECT_THAT(said, HasSubstr("and 50 more"));
}

TEST(RuleJson, WritesOneRuleALine) {
  RuleSetSpec spec;
  spec.version = 7;
  Rule rule;
  rule.id = "r1";
  rule.target = "c1";
  rule.limit = 3;
  rule.window.length = hours{24};
  spec.rules = {rule};
  spec.campaigns = {{"c1", "a1", {"g1"}, false}, {"c2", "", {}, true}};
  EXPECT_EQ(to_rules_json(spec), R"({
  "version": 7,
  "rules": [
    {"id":"r1","scope":"campaign","target":"c1","event_type":"impression","limit":3,"window":{"kind":"sliding","length":"1d"}}
  ],
  "campaigns": [
    {"id":"c1","advertiser_id":"a1","groups":["g1"]},
    {"id":"c2","deleted":true}
  ]
}
)");
}

TEST(RuleJson, WritesAnIdThatIsNotUtf8WithoutFailing) {
  RuleSetSpec spec;
  spec.campaigns = {{"c\xff", "", {}, false}};
  EXPECT_TRUE(parse_rules_json(to_rules_json(spec)).ok());
}

}  // namespace rule_json_test
}  // namespace fcap::rule_text
