// One wrong rule, a shrink that is meant, and who is told which version runs.
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "rule_text/snapshot.h"
#include "support/rule_refresher.h"

namespace fcap {
namespace rule_quarantine_pg_test {

using sources::RefreshState;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using testing::kNever;
using testing::kPatience;
using testing::RuleRefresherPg;
using testing::Running;
using testing::wait_until;

// One after the other: each bad row is left out and named, the others are in force.
TEST_F(RuleRefresherPg, ABadRowIsQuarantinedAndDoesNotHoldUpTheOthers) {
  Running running(options(milliseconds{50}));
  ASSERT_TRUE(running.start().ok());
  server->try_sql(database_, "ALTER TABLE campaigns DROP CONSTRAINT campaigns_window_range");
  std::size_t good = 10;
  const std::pair<std::string, std::string> rows[] = {
      {"UPDATE campaigns SET window_seconds = 34560000 WHERE id = 'c4'", "campaign:c4"},
      {"UPDATE campaigns SET window_seconds = -1 WHERE id = 'c3'",
       "campaigns \"c3\", window_seconds"},
      {"INSERT INTO cap_rules (id, scope, window_kind, window_seconds) VALUES"
       " ('too-long', 'user', 'sliding', 8640000)",
       "rule \"too-long\": window length 100d is more than the retention, 32d"},
  };
  std::size_t bad = 0;
  for (const auto& [statement, said] : rows) {
    sql(statement);
    add_rule("good" + std::to_string(++bad));
    good += statement.starts_with("UPDATE") ? 0U : 1U;
    ASSERT_TRUE(wait_until([&] { return running.state().quarantined_count == bad; }, kPatience))
        << statement << ": " << running.state().last_error;
    EXPECT_THAT(running.state().quarantined, ::testing::Contains(HasSubstr(said)));
    EXPECT_TRUE(running.reaches(good));
    EXPECT_EQ(running.state().refused, 0U);
    EXPECT_EQ(running.state().last_error, "");
  }
  sql("DELETE FROM cap_rules WHERE id = 'too-long'; UPDATE campaigns SET window_seconds = 60");
  EXPECT_TRUE(wait_until([&] { return running.state().quarantined_count == 0; }, kPatience));
}

TEST_F(RuleRefresherPg, AStartFromTheSnapshotStillKnowsWhatIsQuarantined) {
  sql("UPDATE campaigns SET window_seconds = 34560000 WHERE id = 'c4'");
  {
    Running earlier(with_snapshot(kNever));
    ASSERT_TRUE(earlier.start().ok());
    ASSERT_TRUE(wait_until([this] { return rule_text::read_snapshot(snapshot_file()).ok(); }));
  }
  Running running(with_snapshot(kNever));
  ASSERT_TRUE(running.start().ok());
  EXPECT_EQ(running.state().source, "postgres");
  EXPECT_EQ(running.state().quarantined_count, 1U);
}

TEST_F(RuleRefresherPg, AShrinkThatIsAcceptedInTheDatabaseIsTakenByEverybody) {
  Running publisher(with_snapshot(milliseconds{50}));
  ASSERT_TRUE(publisher.start().ok());
  RuleSourceOptions file_alone;
  file_alone.snapshot_file = snapshot_file();
  file_alone.poll_interval = milliseconds{50};
  Running follower(file_alone);
  ASSERT_TRUE(follower.start().ok());
  Running reader(options(milliseconds{50}));
  ASSERT_TRUE(reader.start().ok());
  const RefreshState before = reader.state();
  const RefreshState publishers = publisher.state();
  sql("DELETE FROM campaigns WHERE id NOT IN ('c1', 'c2')");
  ASSERT_TRUE(reader.refuses_since(before));
  ASSERT_TRUE(publisher.refuses_since(publishers));
  EXPECT_THAT(reader.state().last_error, HasSubstr("SELECT fcap_accept_rules()"));
  sql("SELECT fcap_accept_rules()");
  EXPECT_TRUE(reader.reaches(2));
  EXPECT_TRUE(publisher.reaches(2));
  EXPECT_TRUE(follower.reaches(2)) << "the snapshot passes it on";
  const RefreshState accepted = reader.state();
  sql("DELETE FROM campaigns");
  EXPECT_TRUE(reader.refuses_since(accepted)) << "one shrink was accepted, not every one";
}

TEST_F(RuleRefresherPg, TheTableSaysWhichVersionRunsAndWhyNotANewerOne) {
  Running running(options(milliseconds{50}));
  ASSERT_TRUE(running.start().ok());
  const auto status = [&](const std::string& what) {
    return server->value(database_, "SELECT coalesce(max((" + what +
                                        ")::text), '') FROM "
                                        "rule_set_status");
  };
  const std::string version = std::to_string(running.current()->version());
  EXPECT_TRUE(wait_until([&] { return status("version") == version; }, kPatience));
  EXPECT_EQ(status("rules"), "10");
  EXPECT_EQ(status("account"), server->value(database_, "SELECT session_user"));
  EXPECT_THAT(status("process"), HasSubstr(":" + std::to_string(getpid())));
  EXPECT_EQ(status("refused_why"), "");
  sql("DELETE FROM campaigns");
  EXPECT_TRUE(wait_until([&] { return !status("refused_why").empty(); }, kPatience));
  EXPECT_THAT(status("refused_why"), HasSubstr("is refused, it is empty"));
  EXPECT_EQ(status("version"), version);
  sql("INSERT INTO campaigns (id, cap_limit, window_seconds)"
      " SELECT 'c' || n, 3, 86400 FROM generate_series(1, 10) n;"
      "UPDATE campaigns SET window_seconds = 34560000 WHERE id = 'c4'");
  EXPECT_TRUE(wait_until([&] { return !status("quarantined").empty(); }, kPatience));
  EXPECT_THAT(status("quarantined"), HasSubstr("campaign:c4"));
  EXPECT_EQ(status("refused_why"), "");
  EXPECT_EQ(status("rules"), "9");
}

}  // namespace rule_quarantine_pg_test
}  // namespace fcap
