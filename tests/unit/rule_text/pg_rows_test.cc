#include "rule_text/pg_rows.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time_text.h"

namespace fcap::rule_text {
namespace pg_rows_test {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Changes to a row, by column.
using Changes = std::map<std::string_view, Cell>;

template <std::size_t kColumns>
std::array<Cell, kColumns> changed(const std::array<std::string_view, kColumns>& columns,
                                   std::array<Cell, kColumns> row, const Changes& changes) {
  for (const auto& [column, cell] : changes) {
    const auto at = std::find(columns.begin(), columns.end(), column) - columns.begin();
    row.at(static_cast<std::size_t>(at)) = cell;
  }
  return row;
}

std::array<Cell, kRuleColumns.size()> rule_row(const Changes& changes) {
  return changed(kRuleColumns,
                 {"r1",
                  "campaign",
                  "c1",
                  "impression",
                  "3",
                  "sliding",
                  "3600.000",
                  {},
                  {},
                  {},
                  {},
                  {},
                  {},
                  "enforce",
                  "soft",
                  "true"},
                 changes);
}

std::array<Cell, kCampaignColumns.size()> campaign_row(const Changes& changes) {
  return changed(kCampaignColumns, {"c1", "a1", "3", "86400", {}, "false"}, changes);
}

Rule good_rule(const Changes& changes) {
  base::Mistakes mistakes;
  Rule rule = rule_of_row(rule_row(changes), mistakes);
  EXPECT_TRUE(mistakes.empty()) << mistakes.text("");
  return rule;
}

TEST(RuleRow, BecomesARule) {
  const Rule rule = good_rule({});
  EXPECT_EQ(rule.id, "r1");
  EXPECT_EQ(rule.scope, Scope::kCampaign);
  EXPECT_EQ(rule.target, "c1");
  EXPECT_EQ(rule.limit, 3U);
  EXPECT_EQ(rule.window.kind, Window::Kind::kSliding);
  EXPECT_EQ(rule.window.length, hours{1});
}

TEST(RuleRow, SecondsAreReadToTheMillisecond) {
  for (const auto& [text, ms] : std::map<std::string_view, int>{{"0.001", 1},
                                                                {"1", 1000},
                                                                {"1.5", 1500},
                                                                {"1.050", 1050},
                                                                {"1.0500000", 1050},
                                                                {"12.345", 12345}}) {
    EXPECT_EQ(good_rule({{"window_seconds", text}}).window.length, milliseconds{ms}) << text;
  }
}

TEST(RuleRow, ACalendarWindowHasItsDefaults) {
  const Rule rule =
      good_rule({{"window_kind", "calendar"}, {"window_seconds", {}}, {"calendar_unit", "week"}});
  EXPECT_EQ(rule.window.unit, CalendarUnit::kWeek);
  EXPECT_EQ(rule.window.time_zone, "UTC");
  EXPECT_EQ(rule.window.week_start, std::chrono::Monday);
}

TEST(RuleRow, AWeekStartIsIgnoredByOtherUnits) {
  const Rule rule = good_rule({{"window_kind", "calendar"},
                               {"window_seconds", {}},
                               {"calendar_unit", "day"},
                               {"week_start", "sunday"}});
  EXPECT_EQ(rule.window.unit, CalendarUnit::kDay);
  EXPECT_EQ(rule.window.week_start, std::chrono::Monday);
}

TEST(RuleRow, EveryColumnIsUsed) {
  const Rule rule = good_rule({{"scope", "user"},
                               {"target", {}},
                               {"event_type", "click"},
                               {"cap_limit", {}},
                               {"window_kind", "calendar"},
                               {"window_seconds", {}},
                               {"calendar_unit", "week"},
                               {"time_zone", "Asia/Kolkata"},
                               {"week_start", "saturday"},
                               {"segment", "vip"},
                               {"starts_at", "2026-03-01 00:00:00+00"},
                               {"ends_at", "2026-03-01 00:00:00.001+00"},
                               {"mode", "shadow"},
                               {"enforcement", "hard"}});
  EXPECT_EQ(rule.scope, Scope::kUser);
  EXPECT_EQ(rule.target, "");
  EXPECT_EQ(rule.event_type, EventType::kClick);
  EXPECT_EQ(rule.limit, std::nullopt);
  EXPECT_EQ(rule.window.time_zone, "Asia/Kolkata");
  EXPECT_EQ(rule.window.week_start, std::chrono::Saturday);
  EXPECT_EQ(rule.segment, "vip");
  EXPECT_EQ(rule.start, base::parse_instant("2026-03-01T00:00:00Z"));
  EXPECT_EQ(rule.end, base::parse_instant("2026-03-01T00:00:00.001Z"));
  EXPECT_EQ(rule.mode, Rule::Mode::kShadow);
  EXPECT_EQ(rule.enforcement, Rule::Enforcement::kHard);
}

struct BadRow {
  Changes changes;
  std::string said;
};

void PrintTo(const BadRow& row, std::ostream* out) {
  *out << row.said;
}

class BadRuleRow : public ::testing::TestWithParam<BadRow> {};

// What the constraints refuse; here they have been dropped.
TEST_P(BadRuleRow, IsReportedWithTableIdAndColumn) {
  base::Mistakes mistakes;
  (void)rule_of_row(rule_row(GetParam().changes), mistakes);
  EXPECT_EQ(mistakes.count(), 1U) << mistakes.text("");
  EXPECT_THAT(mistakes.text(""), HasSubstr(GetParam().said));
}

INSTANTIATE_TEST_SUITE_P(
    OfCapRules, BadRuleRow,
    ::testing::Values(
        BadRow{{{"id", {}}}, "cap_rules \"NULL\", id: is NULL"},
        BadRow{{{"id", ""}}, "id: must have 1 to 256 bytes"},
        BadRow{{{"id", "campaign:c1"}}, "id: must not begin with campaign:"},
        BadRow{{{"scope", "site"}}, "cap_rules \"r1\", scope: must be one of campaign, creative"},
        BadRow{{{"scope", {}}}, "scope: is NULL"},
        BadRow{{{"scope", "user"}}, "target: must be NULL for the user scope"},
        BadRow{{{"target", {}}}, "target: is NULL"},
        BadRow{{{"event_type", "view"}}, "event_type: must be one of"},
        BadRow{{{"cap_limit", "-1"}}, "cap_limit: must be a whole number"},
        BadRow{{{"cap_limit", "3.5"}}, "cap_limit: must be a whole number"},
        BadRow{{{"cap_limit", "4294967296"}}, "cap_limit: must be a whole number"},
        BadRow{{{"cap_limit", ""}}, "cap_limit: must be a whole number"},
        BadRow{{{"window_kind", "rolling"}}, "window_kind: must be one of"},
        BadRow{{{"window_seconds", {}}}, "window_seconds: is NULL"},
        BadRow{{{"window_seconds", "0.000"}}, "window_seconds: must be a number of seconds"},
        BadRow{{{"window_seconds", "-5"}}, "window_seconds: must be a number of seconds"},
        BadRow{{{"window_seconds", "0.0005"}}, "window_seconds: must be a number of seconds"},
        BadRow{{{"window_seconds", "NaN"}}, "window_seconds: must be a number of seconds"},
        BadRow{{{"window_seconds", "1e9"}}, "window_seconds: must be a number of seconds"},
        BadRow{{{"window_seconds", "99999999999999999999"}}, "window_seconds: must be a number"},
        BadRow{{{"window_kind", "lifetime"}}, "window_seconds: must be NULL"},
        BadRow{{{"calendar_unit", "day"}}, "calendar_unit: must be NULL"},
        BadRow{{{"time_zone", "UTC"}}, "time_zone: must be NULL"},
        BadRow{{{"week_start", "monday"}}, "week_start: must be NULL"},
        BadRow{{{"window_kind", "calendar"}, {"window_seconds", {}}}, "calendar_unit: is NULL"},
        BadRow{{{"window_kind", "calendar"},
                {"window_seconds", {}},
                {"calendar_unit", "day"},
                {"week_start", "blue"}},
               "week_start: must be one of"},
        BadRow{{{"starts_at", "infinity"}}, "starts_at: must be a timestamptz"},
        BadRow{{{"starts_at", "2026-03-01 00:00:00"}}, "starts_at: must be a timestamptz"},
        BadRow{{{"starts_at", "2026-03-01 00:00:00+00"}, {"ends_at", "2026-03-01 00:00:00+00"}},
               "ends_at: must be later than starts_at"},
        BadRow{{{"mode", "off"}}, "mode: must be one of"},
        BadRow{{{"enforcement", {}}}, "enforcement: is NULL"},
        BadRow{{{"enabled", {}}}, "enabled: is NULL"}));

TEST(CampaignRow, WithACapBecomesACampaignAndItsRule) {
  base::Mistakes mistakes;
  const CampaignRow row = campaign_of_row(campaign_row({}), mistakes);
  EXPECT_TRUE(mistakes.empty());
  EXPECT_EQ(row.campaign.id, "c1");
  EXPECT_EQ(row.campaign.advertiser_id, "a1");
  EXPECT_FALSE(row.campaign.deleted);
  ASSERT_TRUE(row.rule);
  EXPECT_EQ(row.rule->id, "campaign:c1");
  EXPECT_EQ(row.rule->scope, Scope::kCampaign);
  EXPECT_EQ(row.rule->target, "c1");
  EXPECT_EQ(row.rule->limit, 3U);
  EXPECT_EQ(row.rule->window.kind, Window::Kind::kSliding);
  EXPECT_EQ(row.rule->window.length, hours{24});
}

TEST(CampaignRow, WithTheLongestIdStillHasARuleThatFits) {
  base::Mistakes mistakes;
  const std::string shorter(247, 'x');
  const std::string longest(256, 'x');
  EXPECT_EQ(campaign_of_row(campaign_row({{"id", shorter}}), mistakes).rule.value().id,
            "campaign:" + shorter);
  const Rule rule = campaign_of_row(campaign_row({{"id", longest}}), mistakes).rule.value();
  EXPECT_LE(rule.id.size(), 256U);
  EXPECT_EQ(rule.target, longest);
  EXPECT_TRUE(mistakes.empty());
}

TEST(CampaignRow, WithoutALimitHasNoRule) {
  base::Mistakes mistakes;
  EXPECT_FALSE(campaign_of_row(campaign_row({{"cap_limit", {}}}), mistakes).rule);
  EXPECT_FALSE(
      campaign_of_row(campaign_row({{"cap_limit", {}}, {"window_seconds", {}}}), mistakes).rule);
  EXPECT_TRUE(mistakes.empty());
}

TEST(CampaignRow, ALimitOfZeroIsARule) {
  base::Mistakes mistakes;
  EXPECT_EQ(campaign_of_row(campaign_row({{"cap_limit", "0"}}), mistakes).rule.value().limit, 0U);
}

TEST(CampaignRow, ADeletedOneKeepsItsAdvertiserAndHasNoRule) {
  base::Mistakes mistakes;
  const CampaignRow row = campaign_of_row(campaign_row({{"deleted_at", "2026-01-01 00:00:00+00"},
                                                        {std::string(kIsDeletedColumn), "true"}}),
                                          mistakes);
  EXPECT_TRUE(row.campaign.deleted);
  EXPECT_EQ(row.campaign.advertiser_id, "a1");
  EXPECT_FALSE(row.rule);
}

TEST(CampaignRow, OneThatIsToBeDeletedIsCappedUntilThen) {
  base::Mistakes mistakes;
  const CampaignRow row =
      campaign_of_row(campaign_row({{"deleted_at", "2030-01-01 00:00:00.5+00"}}), mistakes);
  EXPECT_FALSE(row.campaign.deleted);
  ASSERT_TRUE(row.rule);
  EXPECT_EQ(row.rule->end, base::parse_instant("2030-01-01T00:00:00.5Z"));
  const CampaignRow never = campaign_of_row(campaign_row({{"deleted_at", "infinity"}}), mistakes);
  ASSERT_TRUE(never.rule);
  EXPECT_EQ(never.rule->end, std::nullopt);
  EXPECT_TRUE(mistakes.empty()) << mistakes.text("");
}

TEST(CampaignRow, MistakesAreReported) {
  for (const auto& [changes, said] :
       {std::pair{Changes{{"window_seconds", {}}}, "campaigns \"c1\", window_seconds: is NULL"},
        std::pair{Changes{{"window_seconds", "0"}}, "window_seconds: must be a number"},
        std::pair{Changes{{"cap_limit", "x"}}, "cap_limit: must be a whole number"},
        std::pair{Changes{{"id", ""}}, "id: must have 1 to 256 bytes"},
        std::pair{Changes{{"advertiser_id", ""}}, "advertiser_id: must have 1 to 256 bytes"}}) {
    base::Mistakes mistakes;
    (void)campaign_of_row(campaign_row(changes), mistakes);
    EXPECT_THAT(mistakes.text(""), HasSubstr(said));
  }
}

TEST(GroupRow, NeedsBothIds) {
  base::Mistakes mistakes;
  const GroupRow row = group_of_row(std::array<Cell, 2>{"c1", "g1"}, mistakes);
  EXPECT_EQ(row.campaign_id, "c1");
  EXPECT_EQ(row.group_id, "g1");
  EXPECT_TRUE(mistakes.empty());
  (void)group_of_row(std::array<Cell, 2>{"c1", std::nullopt}, mistakes);
  EXPECT_EQ(mistakes.count(), 1U);
}

}  // namespace pg_rows_test
}  // namespace fcap::rule_text
