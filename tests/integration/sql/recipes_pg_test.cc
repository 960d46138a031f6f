// The statements of docs/recipes.md, run by a real PostgreSQL, give the rules that stand beside
// them as JSON.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "rule_text/rule_json.h"
#include "sources/rule_refresher.h"
#include "support/postgres_server.h"
#include "tests/unit/cli/recipe_blocks.h"

namespace fcap {
namespace recipes_pg_test {

using testing::PostgresServer;
using testing::RecipeBlock;

// The rule set as text, whatever its version and the order of its rows.
std::string told(RuleSetSpec spec) {
  spec.version = 0;
  std::ranges::sort(spec.rules, {}, &Rule::id);
  std::ranges::sort(spec.campaigns, {}, &Campaign::id);
  return rule_text::to_rules_json(spec);
}

TEST(Recipes, RowsAreTheRulesBesideThem) {
  if (!PostgresServer::available()) GTEST_SKIP() << "PostgreSQL is missing";
  PostgresServer postgres;
  std::string section;
  std::string database;
  std::size_t compared = 0;
  for (const RecipeBlock& block : testing::recipe_blocks()) {
    if (block.section != section) database = postgres.new_database();
    section = block.section;
    if (block.kind == "sql") postgres.sql(database, block.text);
    if (block.kind != "json rules") continue;
    auto loaded = sources::load_from_postgres(database, std::chrono::seconds{60});
    ASSERT_TRUE(loaded.ok()) << block.place() << ": " << loaded.status().text();
    auto written = rule_text::parse_rules_json(block.text);
    ASSERT_TRUE(written.ok()) << block.place() << ": " << written.status().text();
    EXPECT_EQ(told(std::move(loaded).value()), told(std::move(written).value())) << block.place();
    ++compared;
  }
  EXPECT_EQ(compared, 9U);
}

}  // namespace recipes_pg_test
}  // namespace fcap
