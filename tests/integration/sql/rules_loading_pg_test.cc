// What is loaded is what the tables hold, and tables that cannot be trusted are refused.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time_text.h"
#include "sources/pg_load.h"
#include "sources/rule_refresher.h"
#include "support/postgres_test.h"
#include "test_paths.h"

namespace fcap {
namespace rules_loading_pg_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::HasSubstr;
using testing::migrate;

// Far longer than anything takes: a test that waits this long has found a bug.
constexpr seconds kPatience{60};

class RulesLoading : public testing::PostgresTest {
 protected:
  RuleSetSpec loaded() {
    Result<RuleSetSpec> spec = sources::load_from_postgres(database_, kPatience);
    EXPECT_TRUE(spec.ok()) << spec.status().text();
    return spec.ok() ? std::move(spec).value() : RuleSetSpec{};
  }

  Status failure() { return sources::load_from_postgres(database_, kPatience).status(); }

  // Loads after statements that make the tables wrong, and expects to be told where.
  void expect_refused(const std::string& statements, const std::vector<std::string>& said) {
    sql(statements);
    const Status status = failure();
    EXPECT_FALSE(status.ok()) << statements;
    EXPECT_FALSE(status.retryable());
    for (const std::string& part : said) EXPECT_THAT(status.text(), HasSubstr(part));
  }
};

const Rule& rule_named(const RuleSetSpec& spec, const std::string& id) {
  static const Rule none;
  const auto found = std::find_if(spec.rules.begin(), spec.rules.end(),
                                  [&id](const Rule& rule) { return rule.id == id; });
  EXPECT_NE(found, spec.rules.end()) << id;
  return found == spec.rules.end() ? none : *found;
}

TEST_F(RulesLoading, CampaignsComeWithTheirCapsAdvertisersAndGroups) {
  sql("INSERT INTO campaigns (id, advertiser_id, cap_limit, window_seconds, deleted_at) VALUES"
      " ('capped', 'a1', 3, 86400, NULL), ('never', NULL, 0, 60, NULL),"
      " ('uncapped', 'a1', NULL, NULL, NULL), ('lifted', 'a1', NULL, 60, NULL),"
      " ('gone', 'a2', 3, 86400, now());"
      "INSERT INTO campaign_groups VALUES ('capped', 'g2'), ('capped', 'g1'), ('gone', 'g1')");
  const RuleSetSpec spec = loaded();
  ASSERT_EQ(spec.campaigns.size(), 5U);
  EXPECT_EQ(spec.campaigns[0].id, "capped");
  EXPECT_EQ(spec.campaigns[0].advertiser_id, "a1");
  EXPECT_EQ(spec.campaigns[0].groups, (std::vector<std::string>{"g1", "g2"}));
  EXPECT_FALSE(spec.campaigns[0].deleted);
  EXPECT_EQ(spec.campaigns[1].id, "gone");
  EXPECT_EQ(spec.campaigns[1].advertiser_id, "a2");
  EXPECT_TRUE(spec.campaigns[1].deleted);
  EXPECT_EQ(spec.campaigns[3].advertiser_id, "");
  ASSERT_EQ(spec.rules.size(), 2U) << "neither a deleted nor an uncapped campaign has a rule";
  const Rule& capped = rule_named(spec, "campaign:capped");
  EXPECT_EQ(capped.target, "capped");
  EXPECT_EQ(capped.limit, 3U);
  EXPECT_EQ(capped.window.length, seconds{86400});
  EXPECT_EQ(rule_named(spec, "campaign:never").limit, 0U);
}

TEST_F(RulesLoading, EveryColumnOfARuleIsRead) {
  sql("INSERT INTO cap_rules VALUES ('all', 'group', '*', 'conversion', 7, 'calendar', NULL, "
      "'week',"
      " 'America/Sao_Paulo', 'sunday', 'vip', '2026-03-01 00:00:00.5+02', '2026-04-01Z', 'shadow',"
      " 'hard', true, 'a note');"
      "INSERT INTO cap_rules (id, scope, window_kind, window_seconds) VALUES"
      " ('short', 'user', 'fixed', 0.25);"
      "INSERT INTO cap_rules (id, scope, window_kind, enabled) VALUES"
      " ('off', 'user', 'lifetime', false)");
  // The server's own settings must not change what is read.
  sql("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET timezone = ''Asia/Tokyo''',"
      " current_database()); EXECUTE format('ALTER DATABASE %I SET datestyle = ''German''',"
      " current_database()); END $$");
  const RuleSetSpec spec = loaded();
  ASSERT_EQ(spec.rules.size(), 2U) << "a disabled rule is none";
  const Rule& rule = rule_named(spec, "all");
  EXPECT_EQ(rule.scope, Scope::kGroup);
  EXPECT_EQ(rule.target, "*");
  EXPECT_EQ(rule.event_type, EventType::kConversion);
  EXPECT_EQ(rule.limit, 7U);
  EXPECT_EQ(rule.window.kind, Window::Kind::kCalendar);
  EXPECT_EQ(rule.window.unit, CalendarUnit::kWeek);
  EXPECT_EQ(rule.window.time_zone, "America/Sao_Paulo");
  EXPECT_EQ(rule.window.week_start, std::chrono::Sunday);
  EXPECT_EQ(rule.segment, "vip");
  EXPECT_EQ(rule.start, base::parse_instant("2026-02-28T22:00:00.5Z"));
  EXPECT_EQ(rule.end, base::parse_instant("2026-04-01T00:00:00Z"));
  EXPECT_EQ(rule.mode, Rule::Mode::kShadow);
  EXPECT_EQ(rule.enforcement, Rule::Enforcement::kHard);
  EXPECT_EQ(rule_named(spec, "short").limit, std::nullopt);
  EXPECT_EQ(rule_named(spec, "short").window.length, milliseconds{250});
}

TEST_F(RulesLoading, TheVersionIsTheTables) {
  EXPECT_EQ(loaded().version, 1U);
  sql("INSERT INTO campaigns (id) VALUES ('c1')");
  EXPECT_EQ(loaded().version, 2U);
}

TEST_F(RulesLoading, TheSampleMakesAValidRuleSet) {
  ASSERT_EQ(migrate(database_, {"--sample"}).exit_code, 0);
  const auto built = RuleSet::build(loaded(), {});
  ASSERT_TRUE(built.ok()) << built.status().text();
  EXPECT_GT(built.value()->rules().size(), 40U);
}

TEST_F(RulesLoading, TheStatementsOfTheDocumentationWork) {
  std::ifstream roles(FCAP_SOURCE_DIR "/sql/roles.sql");
  sql({std::istreambuf_iterator<char>(roles), std::istreambuf_iterator<char>()});
  std::ifstream file(FCAP_SOURCE_DIR "/docs/rules-sql.md");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string fence = "```sql\n";
  std::size_t blocks = 0;
  for (std::size_t at = text.find(fence); at != std::string::npos; at = text.find(fence, at)) {
    at += fence.size();
    const std::string block = text.substr(at, text.find("```", at) - at);
    // The recipe of a view needs a table and schemas of its own: migrations_pg_test runs it.
    if (block.find("fcap_view") != std::string::npos) continue;
    sql(block);
    ++blocks;
  }
  EXPECT_EQ(blocks, 8U);
  const auto built = RuleSet::build(loaded(), {});
  ASSERT_TRUE(built.ok()) << built.status().text();
  EXPECT_EQ(built.value()->rules().size(), 3U);
}

TEST_F(RulesLoading, MoreRowsThanFitIntoOneMessageAllArrive) {
  sql("INSERT INTO campaigns (id, cap_limit, window_seconds)"
      " SELECT 'c' || n, 1, n FROM generate_series(1, 10000) n");
  const RuleSetSpec spec = loaded();
  EXPECT_EQ(spec.campaigns.size(), 10000U);
  EXPECT_EQ(spec.rules.size(), 10000U);
  EXPECT_EQ(rule_named(spec, "campaign:c7777").window.length, seconds{7777});
}

TEST_F(RulesLoading, IdsKeepTheirBytesInEveryEncoding) {
  sql("INSERT INTO campaigns (id, advertiser_id) VALUES (E'é\\n\"漢', ' a ')");
  EXPECT_EQ(loaded().campaigns.at(0).id, "é\n\"漢");
  EXPECT_EQ(loaded().campaigns.at(0).advertiser_id, " a ");
}

TEST_F(RulesLoading, AnUnchangedVersionIsNotReadAgain) {
  const postgres::PgWait wait{steady_clock::now() + kPatience};
  rules::PlainSpecSink sink;
  auto first = sources::load_if_changed(database_, std::nullopt, wait, sink);
  ASSERT_TRUE(first.ok() && first.value());
  const base::TableVersion version = first.value()->version;
  const auto second = sources::load_if_changed(database_, version, wait, sink);
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second.value());
  sql("INSERT INTO campaigns (id) VALUES ('c1')");
  const auto third = sources::load_if_changed(database_, version, wait, sink);
  ASSERT_TRUE(third.ok());
  EXPECT_TRUE(third.value());
}

TEST_F(RulesLoading, TheSameNumberInAnotherHistoryIsAChange) {
  const postgres::PgWait wait{steady_clock::now() + kPatience};
  rules::PlainSpecSink sink;
  auto first = sources::load_if_changed(database_, std::nullopt, wait, sink);
  ASSERT_TRUE(first.ok() && first.value());
  // A backup of the version before was restored, and something else was changed since.
  sql("UPDATE rule_set_version SET changed_at = clock_timestamp()");
  const auto second = sources::load_if_changed(database_, first.value()->version, wait, sink);
  ASSERT_TRUE(second.ok());
  EXPECT_TRUE(second.value());
}

TEST_F(RulesLoading, EveryBadRowIsReportedWithTableIdAndColumn) {
  expect_refused(
      "ALTER TABLE campaigns DROP CONSTRAINT campaigns_cap_limit_range;"
      "ALTER TABLE cap_rules DROP CONSTRAINT cap_rules_scope_known;"
      "ALTER TABLE cap_rules DROP CONSTRAINT cap_rules_length_fits_kind;"
      "ALTER TABLE campaign_groups DROP CONSTRAINT campaign_groups_campaign_id_fkey;"
      "INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES ('good', 1, 60), ('bad', -1, "
      "60);"
      "INSERT INTO cap_rules (id, scope, target, window_kind) VALUES ('r1', 'site', 's', "
      "'lifetime'),"
      " ('r2', 'campaign', 'good', 'sliding');"
      "INSERT INTO campaign_groups VALUES ('nobody', 'g1')",
      {"campaigns \"bad\", cap_limit", "cap_rules \"r1\", scope",
       "cap_rules \"r2\", window_seconds: is NULL", "campaign_groups \"nobody\", campaign_id"});
}

TEST_F(RulesLoading, ColumnsOfAnotherTypeAreRefused) {
  expect_refused(
      "ALTER TABLE campaigns DROP CONSTRAINT campaigns_cap_limit_range;"
      "ALTER TABLE campaigns ALTER cap_limit TYPE text;"
      "INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES ('c1', 'three', 60)",
      {"campaigns \"c1\", cap_limit: must be a whole number"});
}

TEST_F(RulesLoading, InstantsWithoutATimeZoneAreRefused) {
  expect_refused(
      "ALTER TABLE cap_rules DROP CONSTRAINT cap_rules_starts_at_range;"
      "ALTER TABLE cap_rules DROP CONSTRAINT cap_rules_ends_after_start;"
      "ALTER TABLE cap_rules ALTER starts_at TYPE timestamp;"
      "INSERT INTO cap_rules (id, scope, window_kind, starts_at)"
      " VALUES ('r1', 'user', 'lifetime', '2026-03-01')",
      {"cap_rules \"r1\", starts_at"});
}

TEST_F(RulesLoading, AMissingTableIsRefusedByName) {
  expect_refused("DROP TABLE cap_rules", {"cap_rules", "does not exist", "fcap-migrate"});
}

TEST_F(RulesLoading, AMissingColumnIsRefusedByName) {
  expect_refused("ALTER TABLE campaigns DROP COLUMN window_seconds", {"window_seconds", "migrate"});
}

TEST_F(RulesLoading, AMissingVersionRowIsRefused) {
  expect_refused("DELETE FROM rule_set_version", {"rule_set_version"});
}

TEST_F(RulesLoading, BytesThatAreNotUtf8AreRefused) {
  const std::string name = "ascii";
  server->sql(database_,
              "CREATE DATABASE " + name +
                  " TEMPLATE template0 ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C'");
  database_.replace(database_.find("dbname="), std::string::npos, "dbname=" + name);
  ASSERT_EQ(migrate(database_).exit_code, 0);
  expect_refused("INSERT INTO campaigns (id) VALUES (E'\\xe9')",
                 {"invalid byte sequence for encoding \"UTF8\""});
}

TEST_F(RulesLoading, ARoleThatMayOnlyReadIsEnough) {
  sql("CREATE ROLE fcap_test_reader LOGIN;"
      "INSERT INTO campaigns (id) VALUES ('c1')");
  const std::string as_reader = database_ + " user=fcap_test_reader";
  const Status status = sources::load_from_postgres(as_reader, kPatience).status();
  EXPECT_EQ(status.code(), StatusCode::kRefused);
  EXPECT_THAT(status.text(), HasSubstr("permission denied"));
  sql("GRANT SELECT ON campaigns, campaign_groups, cap_rules, rule_set_version TO "
      "fcap_test_reader");
  const auto spec = sources::load_from_postgres(as_reader, kPatience);
  ASSERT_TRUE(spec.ok()) << spec.status().text();
  EXPECT_EQ(spec.value().campaigns.size(), 1U);
}

TEST_F(RulesLoading, RowsThatARoleMayNotSeeAreAnErrorRatherThanMissing) {
  sql("CREATE ROLE fcap_tenant LOGIN;"
      "GRANT SELECT ON campaigns, campaign_groups, cap_rules, rule_set_version TO fcap_tenant;"
      "ALTER TABLE cap_rules ENABLE ROW LEVEL SECURITY");
  const Status status =
      sources::load_from_postgres(database_ + " user=fcap_tenant", kPatience).status();
  EXPECT_THAT(status.text(), HasSubstr("row-level security"));
}

TEST_F(RulesLoading, AStringThatIsNoConnectionStringIsNotShown) {
  const Status status = sources::load_from_postgres("host=x hunter2", kPatience).status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(status.retryable());
  EXPECT_THAT(status.text(), Not(HasSubstr("hunter2")));
}

TEST_F(RulesLoading, AServerThatIsNotThereIsUnavailable) {
  const Status status =
      sources::load_from_postgres("host=127.0.0.1 port=1 dbname=x", kPatience).status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(status.retryable());
}

TEST_F(RulesLoading, AFrozenServerIsGivenUpAtTheDeadline) {
  server->freeze();
  const Status status = sources::load_from_postgres(database_, milliseconds{200}).status();
  server->thaw();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.text();
  EXPECT_TRUE(status.retryable());
}

TEST_F(RulesLoading, ALockedTableIsGivenUpAtTheDeadline) {
  testing::Process holder(
      {"psql", "-Xq", database_, "-c", "BEGIN; LOCK TABLE cap_rules; SELECT pg_sleep(600)"});
  ASSERT_TRUE(testing::wait_until([this] {
    return server->value(database_,
                         "SELECT count(*) FROM pg_locks WHERE relation ="
                         " 'cap_rules'::regclass AND mode = 'AccessExclusiveLock'") == "1";
  }));
  const Status status = sources::load_from_postgres(database_, milliseconds{300}).status();
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status.text();
}

}  // namespace rules_loading_pg_test
}  // namespace fcap
