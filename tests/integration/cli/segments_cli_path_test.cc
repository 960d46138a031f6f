// The fcap command with segments that are stored in PostgreSQL.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/checker_world.h"
#include "support/postgres_test.h"
#include "support/process.h"
#include "test_paths.h"

namespace fcap {
namespace segments_cli_path_test {

using nlohmann::json;
using testing::CheckerWorld;
using testing::Finished;
using ::testing::HasSubstr;
using testing::kCheckedAt;
using testing::RedisServer;

class SegmentsCli : public testing::PostgresTest {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    world_ = std::make_unique<CheckerWorld>();
    world_->record("u1", 1);
    world_->record("u2", 1);
    sql("INSERT INTO cap_rules (id, scope, target, cap_limit, window_kind, window_seconds, segment)"
        " VALUES ('all', 'campaign', 'c1', 1, 'sliding', 86400, NULL),"
        "        ('vip', 'campaign', 'c1', 5, 'sliding', 86400, 'vip')");
  }

  Finished fcap(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), FCAP_CLI_BINARY);
    return testing::run(arguments,
                        {.environment = {"FCAP_REDIS=" + world_->redis.address(),
                                         "FCAP_POSTGRES=" + database_, "FCAP_TIMEOUT=30s"},
                         .input = {}});
  }

  const std::string at_ = std::to_string(to_ms(kCheckedAt));
  std::unique_ptr<CheckerWorld> world_;
};

TEST_F(SegmentsCli, CheckAndExplainKnowTheMembers) {
  sql("INSERT INTO segment_members VALUES ('vip', 'u1')");
  const Finished member = fcap({"check", "u1", "c1", "--json", "--at", at_});
  ASSERT_EQ(member.exit_code, 0) << member.errors;
  EXPECT_EQ(json::parse(member.output)["verdicts"][0]["allowed"], true);
  EXPECT_EQ(json::parse(member.output)["segment_set_version"], 2);
  const Finished other = fcap({"check", "u2", "c1", "--json", "--at", at_});
  EXPECT_EQ(json::parse(other.output)["verdicts"][0]["allowed"], false);
  const Finished explained = fcap({"explain", "u1", "c1", "--at", at_});
  EXPECT_THAT(explained.output, HasSubstr("stored segments version 2"));
  EXPECT_THAT(explained.output, HasSubstr("replaced by rule \"vip\""));
}

TEST_F(SegmentsCli, RulesTellsOfThemAndWarns) {
  sql("INSERT INTO segment_members VALUES ('press', 'u1'), ('press', '9')");
  const Finished told = fcap({"rules"});
  ASSERT_EQ(told.exit_code, 0) << told.errors;
  EXPECT_THAT(told.output, HasSubstr("stored segments version 2 from PostgreSQL: 1 segment, 2"));
  EXPECT_THAT(told.output, HasSubstr("warning: segment \"vip\", which rule \"vip\" names"));
  sql("INSERT INTO segments (id, bitmap) VALUES ('broken', '\\x00')");
  const Finished checked = fcap({"rules", "--check"});
  EXPECT_EQ(checked.exit_code, 1);
  EXPECT_THAT(checked.output, HasSubstr("segments \"broken\""));
}

TEST_F(SegmentsCli, ADatabaseFromBeforeSegmentsStillAnswers) {
  sql("DROP TABLE segments, segment_members, segment_set_version CASCADE");
  const Finished checked = fcap({"check", "u1", "c1", "--json", "--at", at_});
  EXPECT_EQ(checked.exit_code, 0) << checked.errors;
  EXPECT_EQ(json::parse(checked.output)["verdicts"][0]["allowed"], false);
  EXPECT_THAT(checked.errors, HasSubstr("no stored segments"));
}

}  // namespace segments_cli_path_test
}  // namespace fcap
