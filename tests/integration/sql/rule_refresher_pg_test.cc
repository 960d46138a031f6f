// A process's rules stay current while PostgreSQL changes, is wrong, is frozen or is gone.
#include <chrono>
#include <fstream>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rule_text/snapshot.h"
#include "support/rule_refresher.h"

namespace fcap {
namespace rule_refresher_pg_test {

using sources::RefreshState;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using testing::kHang;
using testing::kNever;
using testing::kPatience;
using testing::RuleRefresherPg;
using testing::Running;
using testing::wait_until;

TEST_F(RuleRefresherPg, StartHandsOutTheRulesBeforeItReturns) {
  Running running(options(kNever));
  ASSERT_TRUE(running.start().ok());
  ASSERT_TRUE(running.current());
  EXPECT_EQ(running.current()->rules().size(), 10U);
  const RefreshState state = running.state();
  EXPECT_EQ(state.source, "postgres");
  EXPECT_EQ(state.version, running.current()->version());
  EXPECT_EQ(state.rule_count, 10U);
  EXPECT_EQ(state.reloads, 1U);
  EXPECT_GE(state.age, milliseconds{0});
  EXPECT_EQ(state.last_error, "");
}

TEST_F(RuleRefresherPg, PollingFindsAChange) {
  Running running(options(milliseconds{50}));
  ASSERT_TRUE(running.start().ok());
  add_rule("r1");
  EXPECT_TRUE(running.reaches(11));
  sql("UPDATE cap_rules SET enabled = false");
  EXPECT_TRUE(running.reaches(10));
}

TEST_F(RuleRefresherPg, PollingHoldsNoConnectionAndLoadsNothingUnchanged) {
  Running running(options(milliseconds{20}));
  ASSERT_TRUE(running.start().ok());
  const std::string connections =
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "
      "pg_backend_pid()";
  EXPECT_TRUE(wait_until([&] { return server->value(database_, connections) == "0"; }));
  // Every answer makes the set young again.
  EXPECT_TRUE(wait_until([&] {
    const milliseconds before = running.state().age;
    std::this_thread::sleep_for(milliseconds{5});
    return running.state().age < before;
  }));
  EXPECT_EQ(running.state().reloads, 1U);
}

TEST_F(RuleRefresherPg, APokeLooksAtOnce) {
  Running running(options(kNever));
  ASSERT_TRUE(running.start().ok());
  add_rule("r1");
  running->poke();
  EXPECT_TRUE(running.reaches(11));
}

TEST_F(RuleRefresherPg, ANotificationMakesAReloadQuick) {
  RuleSourceOptions listening = options(kNever);
  listening.listen = true;
  Running running(listening);
  ASSERT_TRUE(running.start().ok());
  ASSERT_TRUE(wait_until([&] { return listeners() == "1"; }));
  add_rule("r1");
  EXPECT_TRUE(running.reaches(11)) << "the next poll is an hour away";
  add_rule("r2");
  EXPECT_TRUE(running.reaches(12));
}

TEST_F(RuleRefresherPg, AKilledListenerIsMadeAnewAndMissesNothing) {
  RuleSourceOptions listening = options(kNever);
  listening.listen = true;
  Running running(listening);
  ASSERT_TRUE(running.start().ok());
  ASSERT_TRUE(wait_until([&] { return listeners() == "1"; }));
  for (std::size_t round = 1; round <= 2; ++round) {
    sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND query = 'LISTEN fcap_rules'");
    add_rule("r" + std::to_string(round));
    EXPECT_TRUE(running.reaches(10 + round));
    EXPECT_TRUE(wait_until([&] { return listeners() == "1"; }, kPatience));
  }
}

TEST_F(RuleRefresherPg, AListenerThatNeverHearsAnythingIsMadeAnew) {
  RuleSourceOptions listening = options(milliseconds{50});
  listening.listen = true;
  Running running(listening);
  ASSERT_TRUE(running.start().ok());
  ASSERT_TRUE(wait_until([&] { return listeners() == "1"; }));
  const std::string pid_of_listener =
      "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query = "
      "'LISTEN fcap_rules'";
  const std::string first_pid = server->value(database_, pid_of_listener);
  // As behind a pooler that does not pass notifications on.
  sql("DROP TRIGGER rule_set_version_notify ON rule_set_version");
  for (std::size_t round = 1; round <= 2; ++round) {
    add_rule("r" + std::to_string(round));
    ASSERT_TRUE(running.reaches(10 + round));
  }
  EXPECT_TRUE(wait_until(
      [&] {
        const auto pids = server->sql(database_, pid_of_listener);
        return !pids.empty() && pids[0][0] != first_pid;
      },
      kPatience));
}

TEST_F(RuleRefresherPg, ARestoredBackupIsLoadedAlthoughItsVersionIsOlder) {
  Running running(options(milliseconds{50}));
  sql("UPDATE rule_set_version SET version = 1000");
  ASSERT_TRUE(running.start().ok());
  sql("BEGIN; INSERT INTO cap_rules (id, scope, window_kind) VALUES ('old', 'user', 'lifetime');"
      " UPDATE rule_set_version SET version = 7; COMMIT");
  EXPECT_TRUE(running.reaches(11));
  EXPECT_EQ(running.current()->version(), 7U);
}

// One after the other, on one refresher: each is refused, the last good set stays, and what is put
// right is loaded again.
TEST_F(RuleRefresherPg, WhatCannotBeTrustedIsRefusedAndTheLastGoodSetStays) {
  Running running(options(milliseconds{50}));
  ASSERT_TRUE(running.start().ok());
  const auto good = running.current();
  struct Accident {
    std::string statements;
    std::string repair;
    std::string said;
  };
  const Accident accidents[] = {
      {"BEGIN; CREATE TABLE kept AS TABLE campaigns; TRUNCATE campaigns CASCADE; COMMIT",
       "INSERT INTO campaigns TABLE kept", "it is empty"},
      {"DELETE FROM campaigns WHERE id NOT IN ('c1', 'c2', 'c3', 'c4')",
       "INSERT INTO campaigns TABLE kept ON CONFLICT DO NOTHING", "it has shrunk: 4 rules"},
      {"BEGIN; ALTER TABLE cap_rules RENAME TO elsewhere; UPDATE rule_set_version SET version ="
       " version + 1; COMMIT",
       "ALTER TABLE elsewhere RENAME TO cap_rules", "cap_rules"},
  };
  std::uint64_t reloads = running.state().reloads;
  for (const Accident& accident : accidents) {
    const RefreshState before = running.state();
    const auto kept = running.current();
    // A type cannot be changed under the operator of a constraint.
    server->try_sql(database_, "ALTER TABLE campaigns DROP CONSTRAINT campaigns_cap_limit_range");
    sql(accident.statements);
    ASSERT_TRUE(running.refuses_since(before)) << accident.statements;
    EXPECT_THAT(running.state().last_error, HasSubstr(accident.said));
    EXPECT_EQ(running.current(), kept) << accident.statements;
    sql(accident.repair);
    ASSERT_TRUE(wait_until([&] { return running.state().last_error.empty(); }, kPatience));
    EXPECT_GE(running.state().reloads, reloads);
    reloads = running.state().reloads;
  }
  EXPECT_TRUE(running.reaches(10));
}

TEST_F(RuleRefresherPg, TheOverrideTakesAnEmptyRuleSet) {
  RuleSourceOptions any = options(milliseconds{50});
  any.accept_any_shrink = true;
  Running running(any);
  ASSERT_TRUE(running.start().ok());
  sql("TRUNCATE campaigns CASCADE");
  EXPECT_TRUE(running.reaches(0));
}

TEST_F(RuleRefresherPg, PostgresGoneMeanwhileKeepsTheRulesAndTheirAgeGrows) {
  Running running(options(milliseconds{50}));
  ASSERT_TRUE(running.start().ok());
  // The server's commits are asynchronous, and this test is not about losing them.
  sql("CHECKPOINT");
  const RefreshState before = running.state();
  server->kill();
  EXPECT_TRUE(running.fails_since(before));
  EXPECT_EQ(running.current()->rules().size(), 10U);
  EXPECT_NE(running.state().last_error, "");
  EXPECT_EQ(running.state().refused, 0U) << "no answer is no refusal";
  const milliseconds age = running.state().age;
  EXPECT_TRUE(wait_until([&] { return running.state().age > age + milliseconds{50}; }));
  server->start();
  add_rule("r1");
  EXPECT_TRUE(running.reaches(11));
}

TEST_F(RuleRefresherPg, WithoutPostgresOrSnapshotStartSaysSoAndGoesOnTrying) {
  server->stop();
  Running running(options(milliseconds{100}));
  const Status status = running.start();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_TRUE(status.retryable());
  EXPECT_FALSE(running.current());
  EXPECT_EQ(running.state().age, milliseconds{-1});
  EXPECT_EQ(running.state().source, "none");
  server->start();
  EXPECT_TRUE(running.reaches(10));
}

TEST_F(RuleRefresherPg, WithoutPostgresTheSnapshotIsUsedUntilItIsBack) {
  leave_snapshot();
  server->stop();
  // A poll is an hour away: what comes back must be found by the backoff.
  Running running(with_snapshot(kNever));
  ASSERT_TRUE(running.start().ok());
  EXPECT_EQ(running.current()->rules().size(), 11U);
  EXPECT_EQ(running.state().source, "snapshot");
  EXPECT_NE(running.state().last_error, "") << "PostgreSQL's failure shows";
  server->start();
  EXPECT_TRUE(running.reaches(10));
  EXPECT_EQ(running.state().source, "postgres");
}

TEST_F(RuleRefresherPg, AFrozenPostgresDoesNotKeepStartFromTheSnapshot) {
  leave_snapshot();
  server->freeze();
  {
    Running running(with_snapshot(kNever));
    EXPECT_TRUE(running.start(seconds{10}).ok());
    EXPECT_EQ(running.state().source, "snapshot");
  }
  server->thaw();
}

TEST_F(RuleRefresherPg, AFrozenPostgresHoldsUpNeitherStartNorTheDestructor) {
  server->freeze();
  const auto began = std::chrono::steady_clock::now();
  {
    RuleSourceOptions listening = options(kNever);
    listening.listen = true;
    Running running(listening);
    EXPECT_EQ(running.start(milliseconds{100}).code(), StatusCode::kUnavailable);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, kHang);
  server->thaw();
}

TEST_F(RuleRefresherPg, APostgresFrozenLaterDoesNotHoldUpTheDestructor) {
  auto running = std::make_unique<Running>(options(milliseconds{50}));
  ASSERT_TRUE(running->start().ok());
  server->freeze();
  const milliseconds age = running->state().age;
  // By then a poll is waiting for the frozen server.
  EXPECT_TRUE(wait_until([&] { return running->state().age > age + milliseconds{300}; }));
  EXPECT_EQ(running->current()->rules().size(), 10U);
  const auto began = std::chrono::steady_clock::now();
  running.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, kHang);
  server->thaw();
}

TEST_F(RuleRefresherPg, AFirstLoadThatIsEmptyWhereTheSnapshotIsNotIsRefused) {
  leave_snapshot();
  sql("TRUNCATE campaigns CASCADE");
  Running running(with_snapshot(kNever));
  ASSERT_TRUE(running.start().ok());
  EXPECT_EQ(running.current()->rules().size(), 11U) << "a restart lets in no more than a reload";
  EXPECT_EQ(running.state().source, "snapshot");
  EXPECT_EQ(running.state().refused, 1U);
}

TEST_F(RuleRefresherPg, AStartReadsNoRowsThatTheSnapshotHas) {
  { ASSERT_NO_FATAL_FAILURE(leave_snapshot()); }
  add_rule("r1");
  {
    Running earlier(with_snapshot(kNever));
    ASSERT_TRUE(earlier.start().ok());
    ASSERT_TRUE(wait_until([this] {
      const auto read = rule_text::read_snapshot(snapshot_file());
      return read.ok() && read.value().rules.size() == 11;
    }));
  }
  // Whoever reads the rules now fails; the version is as it was.
  sql("ALTER TABLE cap_rules RENAME TO hidden");
  Running running(with_snapshot(milliseconds{50}));
  ASSERT_TRUE(running.start().ok());
  EXPECT_EQ(running.state().source, "postgres");
  EXPECT_EQ(running.state().failed, 0U);
  EXPECT_EQ(running.current()->rules().size(), 11U);
  sql("ALTER TABLE hidden RENAME TO cap_rules");
  add_rule("r2");
  EXPECT_TRUE(running.reaches(12));
}

TEST_F(RuleRefresherPg, ALargeSnapshotIsInForceBeforeTheTablesHaveBeenRead) {
  sql("INSERT INTO campaigns (id, cap_limit, window_seconds)"
      " SELECT 'd' || n, 3, 86400 FROM generate_series(1, 60000) n");
  {
    Running earlier(with_snapshot(kNever));
    ASSERT_TRUE(earlier.start().ok());
    ASSERT_TRUE(wait_until([this] { return rule_text::read_snapshot(snapshot_file()).ok(); }));
  }
  add_rule("r1");
  server->freeze();
  Running running(with_snapshot(milliseconds{50}));
  EXPECT_TRUE(running.start(seconds{20}).ok());
  EXPECT_EQ(running.state().source, "snapshot");
  EXPECT_EQ(running.current()->rules().size(), 60'010U);
  server->thaw();
  EXPECT_TRUE(running.reaches(60'011)) << "the tables' rules follow";
  EXPECT_EQ(running.state().source, "postgres");
}

TEST_F(RuleRefresherPg, ACorruptSnapshotIsNoReasonNotToStart) {
  std::ofstream(snapshot_file()) << "rubbish";
  Running running(with_snapshot(kNever));
  ASSERT_TRUE(running.start().ok());
  EXPECT_TRUE(wait_until([this] { return rule_text::read_snapshot(snapshot_file()).ok(); }))
      << "and it is replaced by a good one";
}

TEST_F(RuleRefresherPg, TheSnapshotFollowsEveryLoad) {
  Running running(with_snapshot(milliseconds{50}));
  ASSERT_TRUE(running.start().ok());
  add_rule("r1");
  ASSERT_TRUE(running.reaches(11));
  EXPECT_TRUE(wait_until([this] {
    const auto read = rule_text::read_snapshot(snapshot_file());
    return read.ok() && read.value().rules.size() == 11;
  }));
}

TEST_F(RuleRefresherPg, AProcessWithTheFileAloneFollowsThePublisher) {
  Running publisher(with_snapshot(milliseconds{50}));
  ASSERT_TRUE(publisher.start().ok());
  RuleSourceOptions file_alone;
  file_alone.snapshot_file = snapshot_file();
  file_alone.poll_interval = milliseconds{50};
  Running reader(file_alone);
  ASSERT_TRUE(reader.start().ok());
  add_rule("r1");
  EXPECT_TRUE(reader.reaches(11));
  EXPECT_EQ(reader.state().source, "snapshot");
}

}  // namespace rule_refresher_pg_test
}  // namespace fcap
