#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rules/compiled_rules.h"
#include "rules/rule_set_access.h"
#include "tests/unit/rules/rules_fixture.h"

// What RuleSet::build() refuses, warns of and stands.
namespace fcap::rules {
namespace build_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Rule good(std::string id) {
  return {.id = std::move(id), .target = "c1", .limit = 1, .window = sliding(1h)};
}

std::string refusal(RuleSetSpec spec, std::chrono::milliseconds retention = std::chrono::days{32}) {
  const auto built = RuleSet::build(std::move(spec), {.retention = retention});
  if (built.ok()) return "";
  EXPECT_EQ(built.status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(built.status().retryable());
  return built.status().text();
}

std::string refusal(Rule rule, std::chrono::milliseconds retention = std::chrono::days{32}) {
  return refusal(RuleSetSpec{.version = 1, .rules = {std::move(rule)}}, retention);
}

std::vector<std::string> warnings(RuleSetSpec spec) {
  auto built = RuleSet::build(std::move(spec), {});
  EXPECT_TRUE(built.ok()) << built.status().text();
  return built.value()->warnings();
}

TEST(Build, RefusesWindowsThatDoNotFitTheRetention) {
  Rule rule = good("r");
  rule.window = sliding(24h);
  EXPECT_EQ(refusal(rule, 24h), "");
  EXPECT_THAT(refusal(rule, 24h - 1ms), HasSubstr("rule \"r\": window length 1d is more than"));
  rule.window = fixed(0ms);
  EXPECT_THAT(refusal(rule), HasSubstr("not above zero"));
  rule.window = calendar(CalendarUnit::kMonth);
  EXPECT_EQ(refusal(rule, 31 * 24h + 1h), "");
  EXPECT_THAT(refusal(rule, 31 * 24h + 1h - 1ms), HasSubstr("needs a retention of 745h"));
  rule.window = calendar(CalendarUnit::kDay);
  EXPECT_EQ(refusal(rule, 25h), "");
  EXPECT_NE(refusal(rule, 25h - 1ms), "");
  rule.window = calendar(CalendarUnit::kHour);
  EXPECT_EQ(refusal(rule, 2h), "");
  EXPECT_NE(refusal(rule, 2h - 1ms), "");
  rule.window = lifetime();
  EXPECT_EQ(refusal(rule, 1ms), "");
  EXPECT_THAT(refusal(rule, 0ms), HasSubstr("retention"));
}

TEST(Build, RefusesTargetsThatTheScopeDoesNotAllow) {
  Rule rule = good("r");
  rule.target = "";
  EXPECT_THAT(refusal(rule), HasSubstr("target is empty"));
  rule.target = std::string(257, 'x');
  EXPECT_THAT(refusal(rule), HasSubstr("target has 257 bytes"));
  rule.target = std::string(256, 'x');
  EXPECT_EQ(refusal(rule), "");
  rule.scope = Scope::kUser;
  rule.target = "*";
  EXPECT_THAT(refusal(rule), HasSubstr("the user scope has no target"));
}

TEST(Build, RefusesUnknownTimeZones) {
  Rule rule = good("r");
  rule.window = calendar(CalendarUnit::kDay, "Europe/Atlantis");
  EXPECT_THAT(refusal(rule), HasSubstr("rule \"r\": time zone \"Europe/Atlantis\""));
}

TEST(Build, RefusesAWeekStartThatIsNoDayForWeeksOnly) {
  Rule rule = good("r");
  rule.window = calendar(CalendarUnit::kWeek, "UTC", std::chrono::weekday{9});
  EXPECT_THAT(refusal(rule), HasSubstr("week start"));
  rule.window = calendar(CalendarUnit::kDay, "UTC", std::chrono::weekday{9});
  EXPECT_EQ(refusal(rule), "");
}

TEST(Build, ReportsEveryMistakeAtOnceEachWithItsId) {
  Rule no_target = good("one");
  no_target.target = "";
  Rule too_long = good("two");
  too_long.window = sliding(33 * 24h);
  Rule zone_a = good("three");
  zone_a.window = calendar(CalendarUnit::kDay, "Nowhere/A");
  Rule zone_b = zone_a;
  zone_b.id = "four";
  Rule empty_segment = good("five");
  empty_segment.segment = "";
  RuleSetSpec spec{
      .version = 1,
      .rules = {no_target, too_long, zone_a, zone_b, empty_segment, good("twice"), good("twice"),
                good("")},
      .campaigns = {{.id = "c"}, {.id = "c"}, {.id = "*"}, {.id = "d", .groups = {""}}}};
  const std::string text = refusal(std::move(spec));
  for (const char* part :
       {"rule \"one\"", "rule \"two\"", "rule \"three\"", "rule \"four\"",
        "rule \"five\": segment is empty", "rule \"twice\": the id is used more than once",
        "rule \"\": id is empty", "campaign \"c\": the id is used more than once",
        "campaign \"*\": id \"*\" is reserved", "campaign \"d\": group is empty"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 9);
}

TEST(Build, RefusesIdsWhoseHashesCollideWithBothNames) {
  // Found by search: equal in the low 48 bits of XXH3-64.
  ASSERT_EQ(ledger::id_hash("c7268563"), ledger::id_hash("c39773865"));
  Rule first = good("first");
  first.target = "c7268563";
  RuleSetSpec spec{.version = 1, .rules = {first}, .campaigns = {{.id = "c39773865"}}};
  const std::string text = refusal(spec);
  EXPECT_THAT(text, HasSubstr("\"c7268563\""));
  EXPECT_THAT(text, HasSubstr("\"c39773865\""));
  // A campaign and a creative never meet in one column.
  Rule creative = good("creative");
  creative.scope = Scope::kCreative;
  creative.target = "c7268563";
  EXPECT_EQ(
      refusal(RuleSetSpec{.version = 1, .rules = {creative}, .campaigns = {{.id = "c39773865"}}}),
      "");
}

TEST(Build, AnEmptyRuleSetAllowsEverything) {
  Scene scene;
  EXPECT_TRUE(scene.check("c1", 1).allowed);
  EXPECT_THAT(scene.rules()->warnings(), IsEmpty());
}

TEST(Build, StandsAMillionRules) {
  RuleSetSpec spec{.version = 1};
  constexpr int kRules = 1'000'000;
  spec.rules.reserve(kRules);
  for (int i = 0; i < kRules; ++i) {
    Rule rule = good("r" + std::to_string(i));
    rule.target = "c" + std::to_string(i);
    spec.rules.push_back(std::move(rule));
  }
  const auto built = RuleSet::build(std::move(spec), {});
  ASSERT_TRUE(built.ok()) << built.status().text();
  const CompiledRules& compiled = RuleSetAccess::compiled(*built.value());
  EXPECT_EQ(compiled.campaigns.size(), static_cast<std::size_t>(kRules));
  // What evaluation reads of a rule and its campaign stays far below what a rule's strings take.
  const std::size_t bytes =
      compiled.rules.size() * sizeof(CompiledRule) +
      compiled.campaigns.slots().size() * sizeof(compiled.campaigns.slots()[0]);
  EXPECT_LE(bytes / kRules, 128U);
  ledger::Ledger ledger;
  ledger.merge({.time = instant_from_ms(0), .campaign = ledger::id_hash("c777777")});
  Evaluator evaluator;
  const CandidateKey keys[] = {candidate_key({"c777777"}), candidate_key({"c777778"})};
  Verdict verdicts[2];
  evaluator.evaluate({*built.value(), ledger, instant_from_ms(1), {}}, keys, verdicts);
  EXPECT_EQ(verdicts[0].rule_id, "r777777");
  EXPECT_TRUE(verdicts[1].allowed);
}

TEST(Warnings, NameARuleThatATighterOneMakesPointless) {
  Rule day = good("1-per-day");
  day.window = sliding(24h);
  Rule hour = good("2-per-hour");
  hour.limit = 2;
  EXPECT_THAT(warnings({.version = 1, .rules = {day, hour}}),
              ElementsAre("rule \"2-per-hour\" can never act: whenever it stands in the way, rule "
                          "\"1-per-day\" does too"));
  day.limit = 3;
  EXPECT_THAT(warnings({.version = 1, .rules = {day, hour}}), IsEmpty());
}

TEST(Warnings, AHardRuleIsNothingOdd) {
  Rule hard = good("exact");
  hard.enforcement = Rule::Enforcement::kHard;
  EXPECT_THAT(warnings({.version = 1, .rules = {hard}}), IsEmpty());
}

TEST(Warnings, NameACampaignThatIsLooserThanItsAdvertiser) {
  Rule campaign = good("campaign");
  campaign.limit = 10;
  Rule advertiser = good("advertiser");
  advertiser.scope = Scope::kAdvertiser;
  advertiser.target = "a1";
  advertiser.limit = 5;
  RuleSetSpec spec{.version = 1,
                   .rules = {campaign, advertiser},
                   .campaigns = {{.id = "c1", .advertiser_id = "a1"}}};
  EXPECT_THAT(warnings(spec), ElementsAre(HasSubstr("rule \"campaign\" can never act")));
  spec.rules[1].end = instant_from_ms(1);
  EXPECT_THAT(warnings(spec), IsEmpty());
}

TEST(Warnings, CalendarsAreComparedWithinOneZoneOnly) {
  Rule day = good("day");
  day.window = calendar(CalendarUnit::kDay, "Europe/Berlin");
  day.limit = 2;
  Rule month = good("month");
  month.window = calendar(CalendarUnit::kMonth, "Europe/Berlin");
  EXPECT_THAT(warnings({.version = 1, .rules = {day, month}}),
              ElementsAre(HasSubstr("rule \"day\" can never act")));
  month.window.time_zone = "UTC";
  EXPECT_THAT(warnings({.version = 1, .rules = {day, month}}), IsEmpty());
}

TEST(Warnings, NameRulesThatCanNeverBeInForceOrExemptNothing) {
  Rule backwards = good("backwards");
  backwards.start = instant_from_ms(2);
  backwards.end = instant_from_ms(2);
  Rule exempts_nothing = good("exempts-nothing");
  exempts_nothing.limit.reset();
  Rule nobody = good("nobody");
  nobody.scope = Scope::kAdvertiser;
  nobody.target = "a9";
  EXPECT_THAT(warnings({.version = 1, .rules = {backwards, exempts_nothing, nobody}}),
              ElementsAre(HasSubstr("\"backwards\" can never act: it ends before it starts"),
                          HasSubstr("\"exempts-nothing\" can never act: it has no limit"),
                          HasSubstr("\"nobody\" can never act: no campaign")));
  Rule general = good("default");
  general.target = "*";
  EXPECT_THAT(warnings({.version = 1, .rules = {exempts_nothing, general}}), IsEmpty());
}

TEST(Warnings, SegmentRulesAndTheirGeneralOneAreNoContradiction) {
  Rule general = good("general");
  Rule vip = good("vip");
  vip.segment = "vip";
  vip.limit = 5;
  Rule hour_before = good("looser");
  hour_before.limit = 3;
  hour_before.window = sliding(30min);
  // For members of "vip" the tighter rule is put aside, and the looser one acts.
  EXPECT_THAT(warnings({.version = 1, .rules = {general, vip, hour_before}}), IsEmpty());
}

// A check looks at each of them.
TEST(Warnings, NameATargetWithVeryManyRulesFirst) {
  RuleSetSpec spec{.version = 1};
  for (int i = 0; i < 2000; ++i) {
    Rule rule = good("r" + std::to_string(i));
    rule.segment = "s" + std::to_string(i);
    if (i >= 1000) rule.target = "*";
    spec.rules.push_back(rule);
  }
  EXPECT_THAT(warnings(spec), IsEmpty()) << "1000 of one target";
  Rule one_more = good("one-more");
  one_more.segment = "one-more";
  spec.rules.push_back(one_more);
  one_more.id = "two-more";
  one_more.target = "*";
  spec.rules.push_back(one_more);
  Rule backwards = good("a-backwards");
  backwards.target = "c2";
  backwards.start = backwards.end = instant_from_ms(2);
  spec.rules.insert(spec.rules.begin(), backwards);
  EXPECT_THAT(warnings(spec), ElementsAre(HasSubstr("campaign \"c1\" has 1001 rules"),
                                          HasSubstr("the defaults for campaigns have 1001 rules"),
                                          HasSubstr("\"a-backwards\" can never act")));
}

TEST(Build, QuarantineLeavesOutWhatIsWrongAndKeepsTheRest) {
  RuleSetSpec spec;
  spec.rules = {good("r1"), good("too-long"), good("r2"), good("nowhere"), good("r3")};
  spec.rules[1].window = sliding(100 * 24h);
  spec.rules[3].window = calendar(CalendarUnit::kDay, "Europe/Nowhere");
  spec.campaigns = {{.id = "c1"}, {.id = "c2", .advertiser_id = "*"}};
  EXPECT_NE(refusal(spec), "") << "on request only";
  const auto built = RuleSet::build(spec, {.quarantine = true});
  ASSERT_TRUE(built.ok()) << built.status().text();
  const RuleSet& set = *built.value();
  ASSERT_EQ(set.rules().size(), 3U);
  EXPECT_EQ(set.rules()[0].id, "r1");
  EXPECT_EQ(set.rules()[1].id, "r2");
  EXPECT_EQ(set.rules()[2].id, "r3");
  EXPECT_EQ(set.campaigns().size(), 1U);
  EXPECT_THAT(set.quarantined(),
              ElementsAre(HasSubstr("rule \"too-long\": window length 100d is more than"),
                          HasSubstr("rule \"nowhere\": "), HasSubstr("campaign \"c2\": ")));
}

TEST(Build, QuarantineOfMoreThanHalfRefusesAll) {
  RuleSetSpec spec;
  spec.rules = {good("r1"), good("r2"), good("r3")};
  spec.rules[0].window = spec.rules[1].window = sliding(100 * 24h);
  const auto built = RuleSet::build(spec, {.quarantine = true});
  ASSERT_FALSE(built.ok());
  EXPECT_THAT(built.status().text(), HasSubstr("rule \"r2\""));
}

TEST(Build, WhatIsWrongWithTheSetAsAWholeIsNotQuarantined) {
  RuleSetSpec spec;
  spec.rules = {good("r1"), good("r1"), good("r3")};
  EXPECT_FALSE(RuleSet::build(spec, {.quarantine = true}).ok());
}

}  // namespace build_test
}  // namespace fcap::rules
