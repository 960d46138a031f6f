// Who may do what in the rules' database, with sql/roles.sql and with the functions of sql/.
#include <chrono>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sources/rule_refresher.h"
#include "sources/segment_loading.h"
#include "support/postgres_test.h"
#include "test_paths.h"

namespace fcap {
namespace sql_rights_pg_test {

using ::testing::HasSubstr;
using testing::migrate;
using testing::SqlAnswer;

constexpr std::chrono::seconds kPatience{60};
constexpr const char* kInsufficientPrivilege = "42501";

std::string roles_sql() {
  std::ifstream file(FCAP_SOURCE_DIR "/sql/roles.sql", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// A database as the documentation has it made: the owner's role migrates.
class SqlRights : public testing::PostgresTest {
 protected:
  std::string make_database() override { return server->new_empty_database(); }

  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    admin(roles_sql());
    const auto migrated = migrate(as("fcap_owner"));
    ASSERT_EQ(migrated.exit_code, 0) << migrated.errors;
    admin(roles_sql());
    admin(
        "INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES ('c1', 3, 86400);"
        "INSERT INTO segment_members VALUES ('vip', 'u1')");
  }

  [[nodiscard]] std::string as(const std::string& role) const {
    return database_ + " options='-c role=" + role + "'";
  }
  void admin(const std::string& statements) { server->sql(database_, statements); }
  SqlAnswer attempt(const std::string& role, const std::string& statements) {
    return server->try_sql(as(role), statements);
  }
  std::string version() { return value("SELECT version FROM rule_set_version"); }
};

// A trigger function that runs with its owner's rights, attached to a table of one's own, wrote to
// another table of one's own, whose trigger then ran with those rights.
std::string takeover(const std::string& function, const std::string& version_table) {
  return "CREATE TEMP TABLE t (x int);"
         "CREATE TEMP TABLE " +
         version_table +
         " (only_row boolean PRIMARY KEY DEFAULT true, version bigint, changed_at timestamptz);"
         "CREATE FUNCTION pg_temp.pwn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
         " EXECUTE 'ALTER ROLE fcap_reader SUPERUSER'; RETURN NULL; END $$;"
         "CREATE TRIGGER a AFTER INSERT ON " +
         version_table +
         " FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.pwn();"
         "CREATE TRIGGER b AFTER INSERT ON t FOR EACH STATEMENT EXECUTE FUNCTION public." +
         function +
         "();"
         "INSERT INTO t VALUES (1)";
}

TEST_F(SqlRights, NoRoleGainsTheOwnersRightsThroughATriggerOfItsOwn) {
  for (const std::string role : {"fcap_reader", "fcap_planner"}) {
    for (const std::string kind : {"rule", "segment"}) {
      const std::string function = "fcap_bump_" + kind + "_set_version";
      const SqlAnswer answer = attempt(role, takeover(function, kind + "_set_version"));
      EXPECT_EQ(answer.error, kInsufficientPrivilege) << answer.message;
      EXPECT_THAT(answer.message, HasSubstr("permission denied for function public." + function));
    }
  }
  EXPECT_EQ(value("SELECT rolsuper FROM pg_roles WHERE rolname = 'fcap_reader'"), "f");
}

TEST_F(SqlRights, TheFunctionsServeTheTablesOfTheirOwnSchemaOnly) {
  for (const std::string kind : {"rule", "segment"}) {
    // Even for whoever may use the function.
    const SqlAnswer answer = attempt(
        "fcap_owner", takeover("fcap_bump_" + kind + "_set_version", kind + "_set_version"));
    EXPECT_EQ(answer.error, kInsufficientPrivilege) << answer.message;
    EXPECT_THAT(answer.message, HasSubstr("its own schema"));
  }
}

TEST_F(SqlRights, EveryFunctionHasAFixedSearchPathAndIsNotForEverybody) {
  const std::string ours =
      "FROM pg_proc p WHERE pronamespace = 'public'::regnamespace AND proname LIKE 'fcap%'";
  EXPECT_NE(value("SELECT count(*) " + ours), "0");
  EXPECT_EQ(value("SELECT coalesce(string_agg(proname, ', '), '') " + ours +
                  " AND NOT EXISTS (SELECT FROM unnest(proconfig) c WHERE c LIKE 'search_path=%')"),
            "");
  EXPECT_EQ(value("SELECT coalesce(string_agg(proname, ', '), '') " + ours +
                  " AND EXISTS (SELECT FROM aclexplode(coalesce(proacl, acldefault('f', proowner)))"
                  " a WHERE a.grantee = 0)"),
            "");
}

TEST_F(SqlRights, TheOwnerOwnsEverythingAndIsNoSuperuser) {
  EXPECT_EQ(value("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'fcap%' AND"
                  " (rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls OR rolcanlogin)"),
            "0");
  EXPECT_EQ(value("SELECT string_agg(DISTINCT relowner::regrole::text, ', ') FROM pg_class"
                  " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"),
            "fcap_owner");
  EXPECT_EQ(value("SELECT string_agg(DISTINCT proowner::regrole::text, ', ') FROM pg_proc"
                  " WHERE pronamespace = 'public'::regnamespace AND proname LIKE 'fcap%'"),
            "fcap_owner");
}

TEST_F(SqlRights, AReaderLoadsRulesAndSegmentsAndChangesNothing) {
  const auto rules = sources::load_from_postgres(as("fcap_reader"), kPatience);
  ASSERT_TRUE(rules.ok()) << rules.status().text();
  EXPECT_EQ(rules.value().rules.size(), 1U);
  const auto segments = sources::load_segments_from_postgres(as("fcap_reader"), kPatience);
  ASSERT_TRUE(segments.ok()) << segments.status().text();
  EXPECT_TRUE(segments.value().set->contains("vip", "u1"));
  for (const std::string statement :
       {"INSERT INTO campaigns (id) VALUES ('x')", "UPDATE campaigns SET cap_limit = 9",
        "DELETE FROM cap_rules", "TRUNCATE segments", "DELETE FROM segment_members",
        "UPDATE rule_set_version SET version = 99"}) {
    EXPECT_EQ(attempt("fcap_reader", statement).error, kInsufficientPrivilege) << statement;
  }
}

TEST_F(SqlRights, APlannerEditsRulesAndSegmentsAndReadsThemAgain) {
  for (const std::string statement :
       {"INSERT INTO campaigns (id) VALUES ('c2')",
        "INSERT INTO campaign_groups VALUES ('c2', 'g')",
        "INSERT INTO cap_rules (id, scope, cap_limit, window_kind, calendar_unit, time_zone)"
        " VALUES ('r', 'user', 9, 'calendar', 'day', 'Europe/Berlin')",
        "UPDATE cap_rules SET cap_limit = 8", "DELETE FROM campaign_groups"}) {
    const std::string before = version();
    const SqlAnswer answer = attempt("fcap_planner", statement);
    EXPECT_EQ(answer.error, "") << statement << ": " << answer.message;
    EXPECT_NE(version(), before) << statement;
  }
  EXPECT_EQ(attempt("fcap_planner", "INSERT INTO segments (id) VALUES ('s')").error, "");
  const auto rules = sources::load_from_postgres(as("fcap_planner"), kPatience);
  ASSERT_TRUE(rules.ok()) << rules.status().text();
  EXPECT_EQ(rules.value().rules.size(), 2U);
  EXPECT_EQ(attempt("fcap_planner", "UPDATE rule_set_version SET version = 99").error,
            kInsufficientPrivilege);
}

TEST_F(SqlRights, AMissingRightIsNamedWithTheFileThatGrantsIt) {
  admin("REVOKE SELECT ON segment_set_version FROM fcap_reader");
  const Status status = sources::load_segments_from_postgres(as("fcap_reader"), kPatience).status();
  EXPECT_THAT(status.text(), HasSubstr("permission denied for table segment_set_version"));
  EXPECT_THAT(status.text(), HasSubstr("sql/roles.sql"));
  EXPECT_NE(status.code(), StatusCode::kInvalidArgument) << "nothing is wrong with the command";
}

TEST_F(SqlRights, TablesThatASuperuserMadeAreHandedOver) {
  const std::string database = server->new_database();
  server->sql(database, roles_sql());
  EXPECT_EQ(server->value(database,
                          "SELECT string_agg(DISTINCT relowner::regrole::text, ', ') FROM pg_class"
                          " WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'"),
            "fcap_owner");
  EXPECT_EQ(server->value(database,
                          "SELECT string_agg(DISTINCT proowner::regrole::text, ', ') FROM pg_proc"
                          " WHERE pronamespace = 'public'::regnamespace AND proname LIKE 'fcap%'"),
            "fcap_owner");
}

}  // namespace sql_rights_pg_test
}  // namespace fcap
