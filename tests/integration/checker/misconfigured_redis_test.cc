// A wrong set-up must never look like success: each mistake is named in the log, in the statistics
// and in Checker::health(), with the server's own words.
#include <fstream>
#include <mutex>
#include <optional>

#include <gtest/gtest.h>

#include "redis/config_record.h"
#include "support/checker_world.h"
#include "support/process.h"

namespace fcap {
namespace misconfigured_redis_test {

using namespace std::chrono_literals;
using testing::CheckerWorld;
using testing::RedisServer;
using testing::wait_until;

// A Checker with what it logs.
class WatchedChecker {
 public:
  explicit WatchedChecker(CheckerOptions options) {
    options.log = [this](LogLevel, std::string_view line) {
      const std::lock_guard lock(mutex_);
      log_ += std::string(line) + '\n';
    };
    auto made = Checker::create(options);
    EXPECT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    checker_->set_rules(testing::daily_rule(1));
  }
  ~WatchedChecker() { checker_.reset(); }  // its threads log
  WatchedChecker(const WatchedChecker&) = delete;
  WatchedChecker& operator=(const WatchedChecker&) = delete;

  [[nodiscard]] StoreHealth health() const { return checker_->health().store; }
  [[nodiscard]] CheckerStats stats() const { return checker_->stats(); }
  // What Checker::health() says is wrong, a line each.
  [[nodiscard]] std::string problems() const {
    std::string lines;
    for (const std::string& problem : checker_->health().problems) lines += problem + '\n';
    return lines;
  }
  [[nodiscard]] bool has_problem(std::string_view text) const {
    return problems().find(text) != std::string::npos;
  }
  Reason ask() { return CheckerWorld::reason(*checker_, "u", 2s); }
  [[nodiscard]] std::string log() const {
    const std::lock_guard lock(mutex_);
    return log_;
  }
  [[nodiscard]] bool logged(std::string_view text) const {
    return log().find(text) != std::string::npos;
  }

 private:
  mutable std::mutex mutex_;
  std::string log_;  // guarded by mutex_
  std::unique_ptr<Checker> checker_;
};

class MisconfiguredChecker : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
  }

  // A Redis as the updater leaves it: the user has reached the cap.
  CheckerWorld& world(const std::vector<std::string>& arguments = {}) {
    world_.emplace(arguments);
    world_->record("u", 3);
    redis::ConfigRecord record;
    record.key_prefix = "fcap";
    record.retention = std::chrono::days{32};
    record.null_user_ids = CheckerOptions{}.null_user_ids;
    world_->redis.command({"SET", redis::config_key("fcap"), redis::encode_config(record)});
    return *world_;
  }
  // An ACL user that the Checker connects as.
  CheckerOptions as_user(const std::vector<std::string>& rules) {
    CheckerWorld& made = world();
    std::vector<std::string> words = {"ACL", "SETUSER", "ads", "on", ">secret"};
    words.insert(words.end(), rules.begin(), rules.end());
    EXPECT_EQ(made.redis.command(words), "OK");
    CheckerOptions options = made.options();
    options.redis.user = "ads";
    options.redis.password = "secret";
    return options;
  }

  static void expect_config(WatchedChecker& watched, ConfigState state, std::string_view named) {
    EXPECT_TRUE(wait_until([&] { return watched.health().config_state == state; }))
        << watched.health().config_text;
    EXPECT_TRUE(wait_until([&] {
      return watched.health().config_text.find(named) != std::string::npos &&
             watched.has_problem(named);
    })) << watched.health().config_text
        << "\n"
        << watched.problems();
    EXPECT_TRUE(wait_until([&] { return watched.logged(named); })) << watched.log();
  }
  static void expect_error(WatchedChecker& watched, std::string_view named) {
    EXPECT_TRUE(wait_until([&] {
      watched.ask();
      return watched.health().last_error.find(named) != std::string::npos;
    })) << watched.health().last_error;
    EXPECT_TRUE(watched.health().last_error_at.has_value());
    EXPECT_TRUE(wait_until([&] { return watched.logged(named); })) << watched.log();
  }
  // Checks pass since nothing is found, and the statistics tell.
  static void expect_no_records(WatchedChecker& watched) {
    EXPECT_TRUE(wait_until([&] { return watched.ask() == Reason::kPassed; }));
    EXPECT_GT(watched.stats().reads.missing, 0U);
    EXPECT_EQ(watched.stats().reads.found, 0U);
  }
  static void expect_server_errors(const WatchedChecker& watched) {
    EXPECT_GT(watched.health().server_errors, 0U);
    EXPECT_GT(watched.stats().reads.server_errors, 0U);
    EXPECT_TRUE(watched.has_problem("NOPERM")) << watched.problems();
  }
  static void expect_refused(WatchedChecker& watched, std::string_view named) {
    expect_error(watched, named);
    EXPECT_FALSE(watched.health().connected);
    EXPECT_TRUE(watched.has_problem(named)) << watched.problems();
    EXPECT_TRUE(wait_until([&] {
      watched.ask();
      return watched.stats().unjudged[Reason::kUnavailable] +
                 watched.stats().unjudged[Reason::kBreakerOpen] >
             0;
    }));
    EXPECT_EQ(watched.health().connections, 0U);
    EXPECT_FALSE(watched.logged(": connected")) << watched.log();
    EXPECT_NE(watched.ask(), Reason::kPassed);
  }

  std::optional<CheckerWorld> world_;
};

TEST_F(MisconfiguredChecker, ARightSetUpAgrees) {
  WatchedChecker watched(world().options());
  EXPECT_TRUE(wait_until([&] { return watched.health().config_state == ConfigState::kAgrees; }));
  EXPECT_TRUE(wait_until([&] { return watched.ask() == Reason::kPassed; }));
  const StoreHealth health = watched.health();
  EXPECT_TRUE(health.connected);
  EXPECT_EQ(health.role, ServerRole::kMaster);
  ASSERT_TRUE(health.clock_difference.has_value());
  EXPECT_LT(std::chrono::abs(*health.clock_difference), 60s);
  EXPECT_EQ(health.server_errors, 0U);
  EXPECT_EQ(health.config_text, "");
  EXPECT_EQ(watched.problems(), "");
  EXPECT_GT(watched.stats().reads.found, 0U);
  EXPECT_EQ(watched.stats().reads.missing, 0U);
}

TEST_F(MisconfiguredChecker, AWrongDatabaseIsNamed) {
  CheckerOptions options = world().options();
  options.redis.database = 5;
  WatchedChecker watched(options);
  expect_config(watched, ConfigState::kMissing, "database 5");
  expect_no_records(watched);
}

TEST_F(MisconfiguredChecker, AWrongPrefixIsNamed) {
  CheckerOptions options = world().options();
  options.key_prefix = "fcap-prod";
  WatchedChecker watched(options);
  expect_config(watched, ConfigState::kMissing, "\"fcap-prod\"");
  expect_no_records(watched);
}

TEST_F(MisconfiguredChecker, ARetentionThatIsNotTheUpdatersIsNamedWithBoth) {
  CheckerOptions options = world().options();
  options.retention = std::chrono::days{40};
  WatchedChecker watched(options);
  expect_config(watched, ConfigState::kDiffers, "retention: 32 d in the writer, 40 d here");
}

TEST_F(MisconfiguredChecker, NullUserIdsThatAreNotTheUpdatersAreNamed) {
  CheckerOptions options = world().options();
  options.null_user_ids = {"none"};
  WatchedChecker watched(options);
  expect_config(watched, ConfigState::kDiffers, "null_user_ids");
}

TEST_F(MisconfiguredChecker, AUserWithoutTheKeyPatternIsNamedAndCounted) {
  WatchedChecker watched(as_user({"+@all", "~other:*"}));
  expect_error(watched, "NOPERM");
  expect_config(watched, ConfigState::kUnknown, "fcap:!config");
  expect_server_errors(watched);
}

TEST_F(MisconfiguredChecker, AUserWithoutGetIsNamedAndCounted) {
  WatchedChecker watched(as_user({"+@all", "-get", "-mget", "~*"}));
  expect_error(watched, "NOPERM");
  expect_config(watched, ConfigState::kUnknown, "fcap:!config");
  expect_server_errors(watched);
}

TEST_F(MisconfiguredChecker, ACountOfErrorsDoesNotFillTheLog) {
  WatchedChecker watched(as_user({"+@all", "-get", "-mget", "~*"}));
  EXPECT_TRUE(wait_until([&] {
    watched.ask();
    return watched.health().server_errors >= 100;
  }));
  std::size_t lines = 0;
  std::string log = watched.log();
  for (std::size_t at = 0; (at = log.find("answers with an error", at)) != std::string::npos;
       ++at) {
    ++lines;
  }
  EXPECT_GE(lines, 2U);
  EXPECT_LE(lines, 20U) << log;
}

TEST_F(MisconfiguredChecker, AClusterNodeWithoutSlotsIsRefused) {
  const RedisServer node({"--cluster-enabled", "yes"});
  CheckerOptions options;
  options.redis.addresses = {node.address()};
  WatchedChecker watched(options);
  expect_refused(watched, "Redis Cluster");
}

TEST_F(MisconfiguredChecker, ASentinelsPortIsRefused) {
  const testing::TemporaryDirectory directory;
  const auto config = directory.path() / "sentinel.conf";
  std::optional<testing::Process> sentinel;
  std::string address;
  // The port is drawn, so that it may be taken.
  for (int port = 21'000 + ::getpid() % 20'000; port < 65'000 && address.empty(); port += 97) {
    std::ofstream(config) << "port " << port << "\nbind 127.0.0.1\ndir "
                          << directory.path().string() << "\n";
    sentinel.emplace(std::vector<std::string>{"redis-server", config.string(), "--sentinel"});
    const std::string text = std::to_string(port);
    const bool up = wait_until([&] {
      return !sentinel->running() ||
             testing::run({"redis-cli", "-p", text, "ping"}).output.starts_with("PONG");
    });
    if (up && sentinel->running()) address = "127.0.0.1:" + text;
  }
  ASSERT_FALSE(address.empty());
  CheckerOptions options;
  options.redis.addresses = {address};
  WatchedChecker watched(options);
  expect_refused(watched, "Sentinel's port");
  sentinel->kill();
}

TEST_F(MisconfiguredChecker, ATooSmallMaxclientsIsNamedAndDoesNotFillTheLog) {
  CheckerWorld& made = world();
  const auto first = CheckerWorld::connected(made.options());
  made.redis.command({"CONFIG", "SET", "maxclients", "1"});
  CheckerOptions options = made.options();
  options.redis.reconnect_backoff_min = 1ms;
  options.redis.reconnect_backoff_max = 2ms;
  WatchedChecker watched(options);
  expect_refused(watched, "max number of clients");
  EXPECT_TRUE(wait_until([&] { return watched.logged("(64 times)"); })) << watched.log();
  const std::string log = watched.log();
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 30) << log;
}

TEST_F(MisconfiguredChecker, AReplicaThatHasLostItsMasterIsNamed) {
  CheckerWorld& master = world();
  const RedisServer replica;
  replica.command({"REPLICAOF", "127.0.0.1", std::to_string(master.redis.port())});
  ASSERT_TRUE(
      wait_until([&] { return replica.command({"ROLE"}).find("connected") != std::string::npos; }));
  CheckerOptions options = master.options();
  options.redis.addresses = {replica.address()};
  {
    WatchedChecker well(options);
    EXPECT_TRUE(wait_until([&] { return well.health().role == ServerRole::kReplica; }));
    EXPECT_TRUE(well.health().replica_link_up);
  }
  master.redis.kill();
  ASSERT_TRUE(
      wait_until([&] { return replica.command({"ROLE"}).find("connected") == std::string::npos; }));
  WatchedChecker watched(options);
  expect_error(watched, "whose link is down");
  EXPECT_TRUE(watched.has_problem("whose link is down")) << watched.problems();
  EXPECT_EQ(watched.health().role, ServerRole::kReplica);
  EXPECT_FALSE(watched.health().replica_link_up);
}

TEST_F(MisconfiguredChecker, AWrongPasswordIsNamed) {
  CheckerOptions options = as_user({"+@all", "~*"});
  options.redis.password = "wrong";
  WatchedChecker watched(options);
  expect_refused(watched, "options user, password");
}

}  // namespace misconfigured_redis_test
}  // namespace fcap
