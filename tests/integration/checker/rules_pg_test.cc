// A Checker whose PostgreSQL is gone or hangs: checks are answered in time all the same, by the
// last good rules where there are any.
#include <string>

#include <gtest/gtest.h>

#include "support/checker_world.h"
#include "support/postgres_test.h"

namespace fcap {
namespace rules_pg_test {

using namespace std::chrono_literals;
using testing::CheckerWorld;
using testing::RedisServer;
using testing::wait_until;

constexpr Candidate kCandidates[] = {{"c1"}};
constexpr auto kPatience = 60s;
// The longest that create() may take when nothing answers is 5 s; a slow machine gets more.
constexpr auto kHang = 30s;

class CheckerRules : public testing::PostgresTest {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    PostgresTest::SetUp();
    if (IsSkipped()) return;
    world_ = std::make_unique<CheckerWorld>();
    world_->record("u", 1);
    // Then a server that is killed has nothing to lose: its commits are asynchronous.
    sql("INSERT INTO campaigns (id, cap_limit, window_seconds) VALUES ('c1', 1, 86400)");
    sql("CHECKPOINT");
  }
  void TearDown() override {
    if (!world_) return;
    server->stop();  // frozen or killed, whatever the test has left
    server->start();
  }

  [[nodiscard]] CheckerOptions options() const {
    CheckerOptions options = world_->options();
    options.rules.postgres = database_;
    options.rules.poll_interval = 1s;
    return options;
  }
  [[nodiscard]] CheckerOptions with_snapshot() const {
    CheckerOptions options = this->options();
    options.rules.snapshot_file = files_.path() / "rules.snapshot";
    return options;
  }

  static std::unique_ptr<Checker> made(const CheckerOptions& options) {
    const auto began = std::chrono::steady_clock::now();
    auto made = Checker::create(options);
    EXPECT_LT(std::chrono::steady_clock::now() - began, kHang);
    EXPECT_TRUE(made.ok()) << made.status().text();
    return made.ok() ? std::move(made).value() : nullptr;
  }
  // Whether checks come to be answered from rules and history.
  static bool comes_to_cap(Checker& checker) {
    return wait_until(
        [&] {
          const CheckResult result = checker.check("u", kCandidates);
          return result.reason == Reason::kPassed && !result.verdicts[0].allowed;
        },
        kPatience);
  }
  // What a check answers while there are no rules; nothing is waited for.
  static void expect_no_rules(Checker& checker, bool allowed) {
    const CheckResult result = checker.check("u", kCandidates);
    EXPECT_EQ(result.reason, Reason::kNoRules);
    EXPECT_EQ(result.verdicts[0].allowed, allowed);
  }

  testing::TemporaryDirectory files_;
  std::unique_ptr<CheckerWorld> world_;
};

TEST_F(CheckerRules, PostgresDeadBeforeTheStartFailsOpenUntilItIsThere) {
  server->kill();
  const auto checker = made(options());
  expect_no_rules(*checker, true);
  CheckerOptions strict = options();
  strict.fail_open = false;
  expect_no_rules(*made(strict), false);
  server->start();
  EXPECT_TRUE(comes_to_cap(*checker));
  EXPECT_GT(checker->stats().unjudged[Reason::kNoRules], 0U);
}

TEST_F(CheckerRules, PostgresFrozenBeforeTheStartFailsOpenUntilItAnswers) {
  server->freeze();
  const auto checker = made(options());
  expect_no_rules(*checker, true);
  server->thaw();
  EXPECT_TRUE(comes_to_cap(*checker));
}

TEST_F(CheckerRules, PostgresDeadBeforeTheStartTheSnapshotCaps) {
  // As an earlier process leaves it behind.
  {
    const auto earlier = made(with_snapshot());
    ASSERT_TRUE(comes_to_cap(*earlier));
    ASSERT_TRUE(
        wait_until([this] { return std::filesystem::exists(files_.path() / "rules.snapshot"); }));
  }
  server->kill();
  const auto checker = made(with_snapshot());
  EXPECT_TRUE(comes_to_cap(*checker));
  EXPECT_EQ(checker->stats().unjudged[Reason::kNoRules], 0U);
}

TEST_F(CheckerRules, PostgresFrozenOrKilledMeanwhileTouchesNoCheck) {
  const auto checker = made(options());
  ASSERT_TRUE(comes_to_cap(*checker));
  for (const bool kill : {false, true}) {
    const auto version = checker->stats().rules.version;
    kill ? server->kill() : server->freeze();
    // Long enough for several polls to begin and hang or fail.
    const auto until = checker->stats().rules.age + 3s;
    std::uint64_t asked = 0;
    while (checker->stats().rules.age < until) {
      const CheckResult result = checker->check("u", kCandidates);
      ASSERT_EQ(result.reason, Reason::kPassed) << "after " << asked;
      ASSERT_FALSE(result.verdicts[0].allowed) << "after " << asked;
      ++asked;
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(checker->stats().rules.version, version);
    kill ? server->start() : server->thaw();
    EXPECT_TRUE(wait_until([&] { return checker->stats().rules.age < 1s; }, kPatience))
        << "it is not found again";
  }
}

}  // namespace rules_pg_test
}  // namespace fcap
