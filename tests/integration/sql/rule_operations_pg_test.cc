// What the tables say of changes: who made which, what a version was, and what is no change at all.
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/postgres_test.h"
#include "test_paths.h"

namespace fcap {
namespace rule_operations_pg_test {

using ::testing::HasSubstr;
using testing::migrate;
using testing::SqlAnswer;

constexpr const char* kDenied = "42501";

class RuleOperations : public testing::PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    std::ifstream file(FCAP_SOURCE_DIR "/sql/roles.sql", std::ios::binary);
    sql({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
  }

  [[nodiscard]] std::string version() const {
    return value("SELECT version FROM rule_set_version");
  }
  SqlAnswer as(const std::string& role, const std::string& statements) {
    return server->try_sql(database_ + " options='-c role=" + role + "'", statements);
  }
  // One line of the history each, newest last, of what came after `after`.
  [[nodiscard]] std::string history(const std::string& after) const {
    return value(
        "SELECT coalesce(string_agg(version || ' ' || operation || ' ' || table_name || ' ' ||"
        " coalesce(row_key, '-'), E'\\n' ORDER BY id), '') FROM rule_history WHERE version > " +
        after);
  }
};

TEST_F(RuleOperations, AStatementThatChangesNothingMakesNobodyLoadAgain) {
  sql("INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES ('c1', 3, 86400);"
      "INSERT INTO campaign_groups VALUES ('c1', 'g');"
      "INSERT INTO cap_rules (id, scope, window_kind) VALUES ('r1', 'user', 'lifetime')");
  const std::string before = version();
  for (const std::string statement :
       {"UPDATE campaigns SET cap_limit = 4 WHERE false", "UPDATE campaigns SET cap_limit = 3",
        "UPDATE campaign_groups SET group_id = 'g'", "DELETE FROM campaign_groups WHERE false",
        "UPDATE cap_rules SET note = note, mode = 'enforce'",
        "DELETE FROM cap_rules WHERE id = 'x'",
        "INSERT INTO campaigns (id) SELECT 'c9' WHERE false",
        "INSERT INTO campaigns (id) VALUES ('c1') ON CONFLICT DO NOTHING"}) {
    sql(statement);
    EXPECT_EQ(version(), before) << statement;
  }
  EXPECT_EQ(history(before), "");
}

TEST_F(RuleOperations, TheHistorySaysWhoChangedWhatAndWhen) {
  const std::string before = version();
  sql("INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES ('c1', 3, 86400), "
      "('c2', 1, 60)");
  sql("UPDATE campaigns SET cap_limit = 5 WHERE id = 'c1'");
  sql("UPDATE campaigns SET id = 'c3' WHERE id = 'c2'");
  sql("INSERT INTO campaign_groups VALUES ('c1', 'g')");
  sql("DELETE FROM campaigns WHERE id = 'c3'");
  sql("TRUNCATE cap_rules");
  EXPECT_EQ(history(before),
            "2 insert campaigns c1\n2 insert campaigns c2\n3 update campaigns c1\n"
            "4 delete campaigns c2\n4 insert campaigns c3\n"
            "5 insert campaign_groups [\"c1\", \"g\"]\n6 delete campaigns c3\n"
            "7 truncate cap_rules -");
  EXPECT_EQ(value("SELECT (old_row ->> 'cap_limit') || '→' || (new_row ->> 'cap_limit')"
                  " FROM rule_history WHERE version = 3"),
            "3→5");
  EXPECT_EQ(
      value("SELECT string_agg(DISTINCT changed_by, ',') FROM rule_history WHERE version > 1"),
      value("SELECT session_user"));
  EXPECT_EQ(value("SELECT bool_and(changed_at > now() - interval '1 hour') FROM rule_history"),
            "t");
}

TEST_F(RuleOperations, AChangeThatIsRolledBackIsNotInTheHistory) {
  sql("BEGIN; INSERT INTO campaigns (id) VALUES ('c1'); ROLLBACK");
  EXPECT_EQ(history("0"), "");
}

TEST_F(RuleOperations, WhatAVersionWasCanBeAsked) {
  sql("INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES ('c1', 3, 86400);"
      "INSERT INTO cap_rules (id, scope, window_kind) VALUES ('r1', 'user', 'lifetime')");
  const std::string then = version();
  sql("UPDATE campaigns SET cap_limit = 5");
  sql("TRUNCATE cap_rules");
  sql("INSERT INTO cap_rules (id, scope, window_kind) VALUES ('r2', 'user', 'lifetime')");
  const auto keys_at = [&](const std::string& at) {
    return value(
        "SELECT string_agg(table_name || ':' || row_key || ':' || coalesce(content ->> "
        "'cap_limit', '-'), ' ' ORDER BY table_name, row_key) FROM fcap_rules_at(" +
        at + ")");
  };
  EXPECT_EQ(keys_at(then), "campaigns:c1:3 cap_rules:r1:-");
  EXPECT_EQ(keys_at(version()), "campaigns:c1:5 cap_rules:r2:-");
  EXPECT_EQ(value("SELECT (jsonb_populate_record(NULL::campaigns, content)).window_seconds"
                  " FROM fcap_rules_at(" +
                  then + ") WHERE table_name = 'campaigns'"),
            "86400");
}

TEST_F(RuleOperations, APlannerAcceptsAndReadsTheHistoryAndAReaderReports) {
  EXPECT_EQ(as("fcap_planner", "SELECT fcap_accept_rules()").error, "");
  EXPECT_EQ(as("fcap_planner", "SELECT fcap_accept_segments()").error, "");
  EXPECT_EQ(value("SELECT accepted_version = version FROM rule_set_version"), "t");
  EXPECT_EQ(value("SELECT accepted_version = version FROM segment_set_version"), "t");
  EXPECT_EQ(value("SELECT operation FROM rule_history ORDER BY id DESC LIMIT 1"), "accept");
  EXPECT_EQ(as("fcap_planner", "SELECT * FROM rule_history").error, "");
  EXPECT_EQ(as("fcap_planner", "SELECT * FROM fcap_rules_at(1)").error, "");
  EXPECT_EQ(as("fcap_planner", "DELETE FROM rule_history").error, kDenied);
  EXPECT_EQ(as("fcap_planner", "UPDATE rule_set_version SET accepted_version = 9").error, kDenied);
  const std::string report = "SELECT fcap_report_rules('p@h:1', 7, 3, NULL, NULL)";
  EXPECT_EQ(as("fcap_reader", report).error, "");
  EXPECT_EQ(as("fcap_reader", report).error, "") << "again";
  EXPECT_EQ(value("SELECT count(*) || process FROM rule_set_status GROUP BY process"), "1p@h:1");
  EXPECT_EQ(as("fcap_reader", "SELECT * FROM rule_set_status").error, "");
  EXPECT_EQ(as("fcap_reader", "SELECT fcap_accept_rules()").error, kDenied);
  EXPECT_EQ(as("fcap_reader", "SELECT * FROM rule_history").error, kDenied);
  EXPECT_EQ(as("fcap_reader", "DELETE FROM rule_set_status").error, kDenied);
  EXPECT_EQ(as("fcap_reader", "UPDATE rule_set_status SET version = 9").error, kDenied);
}

TEST_F(RuleOperations, WhatHasBeenSilentForADayGoes) {
  sql("INSERT INTO rule_set_status VALUES ('a', 'old@h:1', 1, 1, NULL, NULL, now() - interval '25 "
      "h')");
  sql("SELECT fcap_report_rules('new@h:2', 1, 1, NULL, NULL)");
  EXPECT_EQ(value("SELECT string_agg(process, ',') FROM rule_set_status"), "new@h:2");
}

TEST_F(RuleOperations, FunctionsOfAnotherSchemaServeThatSchema) {
  const std::string database = server->new_empty_database();
  server->sql(database, "CREATE SCHEMA caps");
  ASSERT_EQ(migrate(database + " options=-csearch_path=caps").exit_code, 0);
  server->sql(database,
              "CREATE TABLE public.rule_set_version (version bigint);"
              "SELECT caps.fcap_accept_rules()");
  EXPECT_EQ(server->value(database, "SELECT accepted_version FROM caps.rule_set_version"), "2");
}

TEST_F(RuleOperations, EveryTableAndColumnIsDescribed) {
  EXPECT_EQ(value("SELECT coalesce(string_agg(c.relname || '.' || a.attname, ', '), '')"
                  " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND"
                  " NOT a.attisdropped WHERE c.relnamespace = 'public'::regnamespace AND"
                  " c.relkind = 'r' AND c.relname <> 'fcap_schema_migrations' AND"
                  " (col_description(c.oid, a.attnum) IS NULL OR"
                  "  obj_description(c.oid, 'pg_class') IS NULL)"),
            "");
}

}  // namespace rule_operations_pg_test
}  // namespace fcap
