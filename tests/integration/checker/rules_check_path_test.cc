// `fcap rules --check` against a database: it says what the processes make of the rules.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "rule_text/snapshot.h"
#include "sources/rule_refresher.h"
#include "support/postgres_test.h"
#include "support/process.h"
#include "test_paths.h"

namespace fcap {
namespace rules_check_path_test {

using nlohmann::json;
using testing::Finished;
using ::testing::HasSubstr;
using ::testing::Not;

class RulesCheck : public testing::PostgresTest {
 protected:
  void SetUp() override {
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    sql("INSERT INTO campaigns (id, cap_limit, window_seconds)"
        " SELECT 'c' || n, 3, 86400 FROM generate_series(1, 8) n");
  }

  Finished rules(std::vector<std::string> options) {
    options.insert(options.begin(), {FCAP_CLI_BINARY, "rules", "--postgres", database_});
    return testing::run(options);
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(RulesCheck, NamesWhatIsQuarantinedAndFails) {
  EXPECT_EQ(rules({"--check"}).exit_code, 0);
  sql("INSERT INTO cap_rules (id, scope, cap_limit, window_kind, window_seconds) VALUES"
      " ('too-long', 'user', 1, 'sliding', 8640000)");
  const Finished checked = rules({"--check"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.output,
              HasSubstr("error: quarantined, not in force: rule \"too-long\": window length 100d"));
  const json machine = json::parse(rules({"--check", "--json"}).output);
  EXPECT_EQ(machine["ok"], false);
  EXPECT_EQ(machine["rule_count"], 8);
  EXPECT_EQ(machine["quarantined"].size(), 1U);
  EXPECT_EQ(rules({}).exit_code, 0) << "the others are listed";
  EXPECT_THAT(rules({}).output, Not(HasSubstr("\ntoo-long")));
}

TEST_F(RulesCheck, ComparesWithTheLastGoodSetAsEveryProcessDoes) {
  const std::string snapshot = directory_.path() / "rules.snapshot";
  const auto spec = sources::load_from_postgres(database_, std::chrono::seconds{60});
  ASSERT_TRUE(spec.ok());
  ASSERT_TRUE(rule_text::write_snapshot(snapshot, spec.value()).ok());
  sql("DELETE FROM campaigns WHERE id NOT IN ('c1', 'c2')");
  const Finished refused = rules({"--check", "--snapshot", snapshot});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output, HasSubstr("version 3 is refused, it has shrunk: 2 rules"));
  EXPECT_THAT(refused.output, HasSubstr("the fleet is likely still on version 2"));
  sql("SELECT fcap_accept_rules()");
  const Finished accepted = rules({"--check", "--snapshot", snapshot});
  EXPECT_EQ(accepted.exit_code, 0) << accepted.output;
}

TEST_F(RulesCheck, TellsWhichProcessDoesNotRunTheVersionAndWhy) {
  sql("SELECT fcap_report_rules('adserver@web1:7', 1, 8, NULL, 'version 2 is refused, it is odd')");
  const Finished refused = rules({"--check"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.output,
              HasSubstr("error: adserver@web1:7 runs version 1: version 2 is refused, it is odd"));
  sql("SELECT fcap_report_rules('adserver@web1:7', 1, 8, NULL, NULL)");
  const Finished late = rules({"--check"});
  EXPECT_EQ(late.exit_code, 0);
  EXPECT_THAT(late.output, HasSubstr("warning: adserver@web1:7 runs version 1, not yet 2"));
  sql("SELECT fcap_report_rules('adserver@web1:7', 2, 8, NULL, NULL)");
  EXPECT_THAT(rules({"--check"}).output, Not(HasSubstr("web1")));
}

TEST_F(RulesCheck, SaysThatAnEmptySetCapsNothing) {
  sql("DELETE FROM campaigns");
  const Finished checked = rules({"--check"});
  EXPECT_EQ(checked.exit_code, 0);
  EXPECT_THAT(checked.output, HasSubstr("warning: the rule set is empty: nothing is capped"));
  EXPECT_THAT(rules({}).output, HasSubstr("the rule set is empty"));
}

}  // namespace rules_check_path_test
}  // namespace fcap
