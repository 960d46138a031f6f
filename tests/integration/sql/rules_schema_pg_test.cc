// The tables of sql/: what they refuse, and that their version changes with them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support/postgres_test.h"

namespace fcap {
namespace rules_schema_pg_test {

using testing::Finished;
using testing::migrate;
using testing::SqlAnswer;

class RulesSchema : public testing::PostgresTest {
 protected:
  SqlAnswer try_sql(const std::string& statements) {
    return server->try_sql(database_, statements);
  }
  long long version() {
    return std::stoll(server->value(database_, "SELECT version FROM rule_set_version"));
  }
};

TEST_F(RulesSchema, MigratesAnEmptyDatabaseAndTheSecondTimeChangesNothing) {
  const std::string database = server->new_empty_database();
  const Finished first = migrate(database);
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_NE(first.output, "");
  const std::string version = server->value(database, "SELECT version FROM rule_set_version");
  const Finished second = migrate(database);
  EXPECT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_EQ(second.output, "") << "nothing is applied twice";
  EXPECT_EQ(server->value(database, "SELECT version FROM rule_set_version"), version);
}

TEST_F(RulesSchema, AWeekStartMayStandBesideAnyUnit) {
  for (const std::string unit : {"hour", "day", "week", "month"}) {
    const std::string insert = fmt::format(
        "INSERT INTO cap_rules (id, scope, window_kind, calendar_unit, week_start) "
        "VALUES ('{}', 'user', 'calendar', '{}', 'sunday') RETURNING id",
        unit, unit);
    EXPECT_EQ(server->value(database_, insert), unit);
  }
}

TEST_F(RulesSchema, TheSampleCanBeLoadedTwice) {
  const std::string count = "SELECT count(*) FROM campaigns";
  EXPECT_EQ(migrate(database_, {"--sample"}).exit_code, 0);
  const std::string campaigns = server->value(database_, count);
  EXPECT_NE(campaigns, "0");
  EXPECT_EQ(migrate(database_, {"--sample"}).exit_code, 0);
  EXPECT_EQ(server->value(database_, count), campaigns);
}

struct Nonsense {
  std::string what;
  std::string statement;
  std::string constraint;
};

void PrintTo(const Nonsense& nonsense, std::ostream* out) {
  *out << nonsense.what;
}

std::string campaign(const std::string& columns, const std::string& values) {
  return "INSERT INTO campaigns (" + columns + ") VALUES (" + values + ")";
}

// A rule for all users with these columns on top.
std::string user_rule(const std::string& columns, const std::string& values) {
  return "INSERT INTO cap_rules (id, scope, " + columns + ") VALUES ('r', 'user', " + values + ")";
}

const std::string long_id = "repeat('x', 257)";

const std::vector<Nonsense>& campaign_nonsense() {
  static const std::vector<Nonsense> all = {
      {"empty id", campaign("id", "''"), "fcap_id_bytes"},
      {"long id", campaign("id", long_id), "fcap_id_bytes"},
      {"reserved id", campaign("id", "'*'"), "campaigns_id_names_one"},
      {"null id", campaign("id", "NULL"), ""},
      {"same id twice", campaign("id", "'c'), ('c'"), "campaigns_pkey"},
      {"empty advertiser", campaign("id, advertiser_id", "'c', ''"), "fcap_id_bytes"},
      {"reserved advertiser", campaign("id, advertiser_id", "'c', '*'"),
       "campaigns_advertiser_names_one"},
      {"negative limit", campaign("id, cap_limit, window_seconds", "'c', -1, 60"),
       "campaigns_cap_limit_range"},
      {"zero window", campaign("id, cap_limit, window_seconds", "'c', 1, 0"),
       "campaigns_window_range"},
      {"negative window", campaign("id, cap_limit, window_seconds", "'c', 1, -60"),
       "campaigns_window_range"},
      {"window of years", campaign("id, cap_limit, window_seconds", "'c', 1, 34560001"),
       "campaigns_window_range"},
      {"limit without window", campaign("id, cap_limit", "'c', 1"), "campaigns_cap_needs_window"},
      {"group of an unknown campaign", "INSERT INTO campaign_groups VALUES ('nobody', 'g')",
       "campaign_groups_campaign_id_fkey"},
      {"empty group",
       "INSERT INTO campaigns (id) VALUES ('c');"
       "INSERT INTO campaign_groups VALUES ('c', '')",
       "fcap_id_bytes"},
      {"reserved group",
       "INSERT INTO campaigns (id) VALUES ('c');"
       "INSERT INTO campaign_groups VALUES ('c', '*')",
       "campaign_groups_group_names_one"},
      {"second version row", "INSERT INTO rule_set_version VALUES (false, 1)",
       "rule_set_version_one_row"},
      {"version zero", "UPDATE rule_set_version SET version = 0", "rule_set_version_range"},
  };
  return all;
}

const std::vector<Nonsense>& rule_nonsense() {
  static const std::string sliding = "window_kind, window_seconds";
  static const std::string lifetime = "window_kind, ";
  static const std::vector<Nonsense> all = {
      {"reserved id",
       "INSERT INTO cap_rules (id, scope, window_kind) VALUES ('campaign:c', 'user', 'lifetime')",
       "cap_rules_id_not_reserved"},
      {"unknown scope",
       "INSERT INTO cap_rules (id, scope, target, window_kind) VALUES ('r', 'site', 's', "
       "'lifetime')",
       "cap_rules_scope_known"},
      {"user scope with target", user_rule(lifetime + "target", "'lifetime', 'u1'"),
       "cap_rules_target_fits_scope"},
      {"campaign scope without target",
       "INSERT INTO cap_rules (id, scope, window_kind) VALUES ('r', 'campaign', 'lifetime')",
       "cap_rules_target_fits_scope"},
      {"unknown event type", user_rule(lifetime + "event_type", "'lifetime', 'view'"),
       "cap_rules_event_type_known"},
      {"negative limit", user_rule(lifetime + "cap_limit", "'lifetime', -1"),
       "cap_rules_cap_limit_range"},
      {"unknown window", user_rule("window_kind", "'rolling'"), "cap_rules_window_kind_known"},
      {"sliding without length", user_rule("window_kind", "'sliding'"),
       "cap_rules_length_fits_kind"},
      {"fixed without length", user_rule("window_kind", "'fixed'"), "cap_rules_length_fits_kind"},
      {"lifetime with length", user_rule(sliding, "'lifetime', 60"), "cap_rules_length_fits_kind"},
      {"zero window", user_rule(sliding, "'sliding', 0"), "cap_rules_window_range"},
      {"negative window", user_rule(sliding, "'sliding', -1"), "cap_rules_window_range"},
      {"not-a-number window", user_rule(sliding, "'sliding', 'NaN'"), "cap_rules_window_range"},
      {"window of years", user_rule(sliding, "'fixed', 34560001"), "cap_rules_window_range"},
      {"calendar without unit", user_rule("window_kind", "'calendar'"), "cap_rules_unit_fits_kind"},
      {"unit without calendar", user_rule(lifetime + "calendar_unit", "'lifetime', 'day'"),
       "cap_rules_unit_fits_kind"},
      {"unknown unit", user_rule(lifetime + "calendar_unit", "'calendar', 'year'"),
       "cap_rules_unit_known"},
      {"zone without calendar", user_rule(lifetime + "time_zone", "'lifetime', 'UTC'"),
       "cap_rules_zone_fits_kind"},
      {"unknown zone",
       user_rule(lifetime + "calendar_unit, time_zone", "'calendar', 'day', 'Europe/Nowhere'"),
       "cap_rules_time_zone_known"},
      {"zone in lower case",
       user_rule(lifetime + "calendar_unit, time_zone", "'calendar', 'day', 'europe/berlin'"),
       "cap_rules_time_zone_known"},
      {"zone of another kind",
       user_rule(lifetime + "calendar_unit, time_zone", "'calendar', 'day', 'posix/UTC'"),
       "cap_rules_time_zone_known"},
      {"week start of a lifetime", user_rule(lifetime + "week_start", "'lifetime', 'monday'"),
       "cap_rules_week_start_fits_kind"},
      {"unknown week start",
       user_rule(lifetime + "calendar_unit, week_start", "'calendar', 'week', 'Mon'"),
       "cap_rules_week_start_known"},
      {"empty segment", user_rule(lifetime + "segment", "'lifetime', ''"), "fcap_id_bytes"},
      {"end before start",
       user_rule(lifetime + "starts_at, ends_at", "'lifetime', '2026-03-02Z', '2026-03-01Z'"),
       "cap_rules_ends_after_start"},
      {"end at start",
       user_rule(lifetime + "starts_at, ends_at", "'lifetime', '2026-03-02Z', '2026-03-02Z'"),
       "cap_rules_ends_after_start"},
      {"start of never", user_rule(lifetime + "starts_at", "'lifetime', 'infinity'"),
       "cap_rules_starts_at_range"},
      {"end before all events", user_rule(lifetime + "ends_at", "'lifetime', '1969-12-31Z'"),
       "cap_rules_ends_at_range"},
      {"unknown mode", user_rule(lifetime + "mode", "'lifetime', 'off'"), "cap_rules_mode_known"},
      {"unknown enforcement", user_rule(lifetime + "enforcement", "'lifetime', 'firm'"),
       "cap_rules_enforcement_known"},
  };
  return all;
}

// All in one database: what is refused leaves nothing behind.
class RefusedByTheSchema : public RulesSchema, public ::testing::WithParamInterface<Nonsense> {
 protected:
  void SetUp() override {
    if (!server) GTEST_SKIP() << "PostgreSQL is missing";
    if (shared_database.empty()) shared_database = server->new_database();
    database_ = shared_database;
  }

  static std::string shared_database;
};
std::string RefusedByTheSchema::shared_database;

TEST_P(RefusedByTheSchema, AndTheVersionStays) {
  const long long before = version();
  const SqlAnswer answer = try_sql(GetParam().statement);
  // Class 23: a constraint.
  EXPECT_EQ(answer.error.substr(0, 2), "23") << answer.message;
  EXPECT_EQ(answer.constraint, GetParam().constraint) << answer.message;
  EXPECT_EQ(version(), before);
}

INSTANTIATE_TEST_SUITE_P(Campaigns, RefusedByTheSchema, ::testing::ValuesIn(campaign_nonsense()));
INSTANTIATE_TEST_SUITE_P(Rules, RefusedByTheSchema, ::testing::ValuesIn(rule_nonsense()));

TEST_F(RulesSchema, AnUnknownZoneIsRefusedInAnUpdateToo) {
  sql(user_rule("window_kind, calendar_unit, time_zone", "'calendar', 'day', 'Europe/Berlin'"));
  EXPECT_EQ(try_sql("UPDATE cap_rules SET time_zone = 'Mars/Olympus'").error, "23514");
}

TEST_F(RulesSchema, EveryKindOfChangeBumpsTheVersion) {
  for (const std::string statement :
       {"INSERT INTO campaigns (id, advertiser_id) VALUES ('c1', 'a1'), ('c2', 'a1')",
        "UPDATE campaigns SET cap_limit = 3, window_seconds = 86400 WHERE id = 'c1'",
        "UPDATE campaigns SET cap_limit = NULL WHERE id = 'c1'",
        "UPDATE campaigns SET deleted_at = now() WHERE id = 'c1'",
        "INSERT INTO campaign_groups VALUES ('c1', 'g1'), ('c2', 'g1')",
        "UPDATE campaign_groups SET group_id = 'g2'",
        "DELETE FROM campaign_groups WHERE campaign_id = 'c2'",
        "INSERT INTO cap_rules (id, scope, window_kind) VALUES ('r1', 'user', 'lifetime')",
        "UPDATE cap_rules SET cap_limit = 0", "DELETE FROM cap_rules",
        "DELETE FROM campaigns WHERE id = 'c1'", "TRUNCATE cap_rules", "TRUNCATE campaign_groups",
        "TRUNCATE campaigns CASCADE", "COPY campaigns (id) FROM PROGRAM 'echo c7'"}) {
    const long long before = version();
    sql(statement);
    EXPECT_GT(version(), before) << statement;
  }
}

TEST_F(RulesSchema, AChangeThatIsRolledBackLeavesTheVersion) {
  const long long before = version();
  sql("BEGIN; INSERT INTO campaigns (id) VALUES ('c1'); ROLLBACK");
  EXPECT_EQ(version(), before);
}

TEST_F(RulesSchema, ALostVersionRowComesBackWithTheNextChange) {
  sql("DELETE FROM rule_set_version");
  sql("INSERT INTO campaigns (id) VALUES ('c1')");
  EXPECT_EQ(version(), 1);
}

TEST_F(RulesSchema, WhoMayChangeRulesNeedNotOwnTheVersion) {
  sql("DROP ROLE IF EXISTS fcap_planner; CREATE ROLE fcap_planner; GRANT INSERT ON campaigns TO "
      "fcap_planner");
  const long long before = version();
  sql("SET ROLE fcap_planner; INSERT INTO campaigns (id) VALUES ('c1')");
  EXPECT_GT(version(), before);
  EXPECT_EQ(try_sql("SET ROLE fcap_planner; UPDATE rule_set_version SET version = 99").error,
            "42501");
}

TEST_F(RulesSchema, AnotherSchemaThanPublicWorks) {
  const std::string database = server->new_empty_database() + " options='-c search_path=caps'";
  server->sql(database, "CREATE SCHEMA caps");
  ASSERT_EQ(migrate(database).exit_code, 0);
  server->sql(database, "SET search_path = ''; INSERT INTO caps.campaigns (id) VALUES ('c1')");
  EXPECT_EQ(server->value(database, "SELECT version FROM caps.rule_set_version"), "2");
}

}  // namespace rules_schema_pg_test
}  // namespace fcap
