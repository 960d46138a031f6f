// sql/migrate beside what else lives in a database, and campaigns that come from a table of
// one's own.
#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sources/rule_refresher.h"
#include "support/postgres_test.h"
#include "test_paths.h"

namespace fcap {
namespace migrations_pg_test {

using ::testing::HasSubstr;
using testing::migrate;

class Migrations : public testing::PostgresTest {
 protected:
  std::string make_database() override { return server->new_empty_database(); }
};

TEST_F(Migrations, AnotherToolsTableOfMigrationsIsLeftAlone) {
  server->sql(database_,
              "CREATE TABLE schema_migrations (version varchar PRIMARY KEY);"
              "INSERT INTO schema_migrations VALUES ('20260101000000')");
  const auto migrated = migrate(database_);
  ASSERT_EQ(migrated.exit_code, 0) << migrated.errors;
  EXPECT_EQ(value("SELECT version FROM schema_migrations"), "20260101000000");
  EXPECT_EQ(value("SELECT min(name) FROM fcap_schema_migrations"), "0008_baseline");
  EXPECT_EQ(migrate(database_).output, "");
}

TEST_F(Migrations, ASchemaFromBeforeTheBaselineIsRefusedAndLeftAsItIs) {
  ASSERT_EQ(migrate(database_).exit_code, 0);
  server->sql(database_,
              "UPDATE fcap_schema_migrations SET name = '0006_status';"
              "INSERT INTO fcap_schema_migrations VALUES ('0007_rule_operations', '')");
  using Arguments = std::vector<std::string>;
  for (const Arguments& arguments : {Arguments{}, Arguments{"--status"}}) {
    const auto refused = migrate(database_, arguments);
    EXPECT_EQ(refused.exit_code, 1);
    EXPECT_EQ(refused.output, "");
    EXPECT_THAT(refused.errors,
                HasSubstr("this schema is 0007_rule_operations, from before the first release, and "
                          "the oldest that can be brought up to date is 0008_baseline: drop the "
                          "database and create it again"));
  }
  EXPECT_EQ(value("SELECT string_agg(name, ',' ORDER BY name) FROM fcap_schema_migrations"),
            "0006_status,0007_rule_operations");
}

TEST_F(Migrations, StatusOfAnEmptyDatabaseLeavesItEmpty) {
  const auto status = migrate(database_, {"--status"});
  EXPECT_EQ(status.exit_code, 0) << status.errors;
  EXPECT_THAT(status.output, HasSubstr("pending  0008_baseline"));
  EXPECT_EQ(value("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"),
            "0");
}

// The SQL blocks below a heading of docs/rules-sql.md.
std::vector<std::string> sql_blocks(const std::string& heading) {
  std::ifstream page(FCAP_SOURCE_DIR "/docs/rules-sql.md");
  std::vector<std::string> blocks;
  bool here = false;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) here = line == "## " + heading;
    if (!here) continue;
    if (line == "```sql") {
      inside = true;
      blocks.emplace_back();
    } else if (line == "```") {
      inside = false;
    } else if (inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

TEST_F(Migrations, CampaignsMayComeFromATableOfOnesOwn) {
  server->sql(database_,
              "CREATE TABLE campaigns (name text);"  // in the way, and somebody else's
              "CREATE TABLE line_items (id bigint PRIMARY KEY, customer_id bigint, "
              "cap_per_day integer, archived boolean NOT NULL DEFAULT false);"
              "INSERT INTO line_items VALUES (456, 7, 3, false), (457, 7, NULL, false), "
              "(458, 8, 5, true)");
  const auto blocks = sql_blocks("Campaigns from a table of your own");
  ASSERT_EQ(blocks.size(), 2U);
  server->sql(database_, blocks[0]);
  const auto migrated = migrate(database_ + " options=-csearch_path=fcap");
  ASSERT_EQ(migrated.exit_code, 0) << migrated.errors;
  server->sql(database_, blocks[1]);

  const std::string reader = database_ + " options=-csearch_path=fcap_view,fcap";
  auto loaded = sources::load_from_postgres(reader, std::chrono::seconds{60});
  ASSERT_TRUE(loaded.ok()) << loaded.status().text();
  ASSERT_EQ(loaded.value().rules.size(), 1U);
  EXPECT_EQ(loaded.value().rules[0].id, "campaign:456");
  EXPECT_EQ(loaded.value().rules[0].limit, 3U);
  EXPECT_EQ(loaded.value().campaigns.size(), 3U);
  const auto version = loaded.value().version;

  server->sql(database_, "UPDATE line_items SET cap_per_day = 4 WHERE id = 456");
  auto changed = sources::load_from_postgres(reader, std::chrono::seconds{60});
  ASSERT_TRUE(changed.ok()) << changed.status().text();
  EXPECT_GT(changed.value().version, version);
  EXPECT_EQ(changed.value().rules[0].limit, 4U);
  EXPECT_EQ(migrate(database_ + " options=-csearch_path=fcap").output, "");
}

}  // namespace migrations_pg_test
}  // namespace fcap
