// check-config --connect against real servers, each with one thing wrong; and every program with
// accounts that may do exactly what docs/operations.md says they need.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/expected_ledgers.h"
#include "support/kafka_broker.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "support/shipped_account.h"
#include "test_paths.h"

namespace fcap {
namespace doctor_path_test {

using ::testing::AllOf;
using testing::Finished;
using ::testing::HasSubstr;
using testing::KafkaBroker;
using testing::KafkaProducer;
using ::testing::Not;
using testing::PostgresServer;
using testing::Process;
using testing::RedisServer;
using testing::wait_until;

constexpr std::chrono::milliseconds kPatience{60'000};
constexpr const char* kKeepsEverything = "retention.ms=-1";

// redis/acl, and docs/operations.md, "Accounts".
const std::vector<std::string> kUpdaterRights = testing::shipped_rights("writer");
const std::vector<std::string> kCommandRights = testing::shipped_rights("reader");

class Doctor : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (KafkaBroker::available() && RedisServer::available() && PostgresServer::available()) {
      kafka = &KafkaBroker::shared();
      postgres = std::make_unique<PostgresServer>();
    }
  }
  static void TearDownTestSuite() { postgres.reset(); }
  void SetUp() override {
    if (!kafka) GTEST_SKIP() << "a server's program is missing";
    redis_ = std::make_unique<RedisServer>();
    topic_ = testing::unique_topic();
  }
  void make_topics(const std::vector<std::string>& settings = {kKeepsEverything}) {
    kafka->create_topic(topic_, 3, settings);
    kafka->create_topic(topic_ + ".dead", 1);
  }

  [[nodiscard]] std::vector<std::string> command(const std::string& name) const {
    std::vector<std::string> words = {FCAP_UPDATER_BINARY,
                                      name,
                                      "--kafka.brokers",
                                      brokers_.empty() ? kafka->brokers() : brokers_,
                                      "--kafka.topic",
                                      topic_,
                                      "--kafka.dead_letter_topic",
                                      topic_ + ".dead",
                                      "--kafka.group_id",
                                      topic_,
                                      "--redis.addresses",
                                      redis_address_.empty() ? redis_->address() : redis_address_,
                                      "--redis.user",
                                      redis_user_,
                                      "--postgres.conninfo",
                                      conninfo_};
    words.insert(words.end(), more_.begin(), more_.end());
    return words;
  }
  [[nodiscard]] std::vector<std::string> environment() const {
    if (redis_user_.empty()) return {};
    return {"FCAP_UPDATER_REDIS_PASSWORD=" + redis_user_};
  }
  Finished examine(const std::vector<std::string>& flags = {},
                   const std::vector<std::string>& more_environment = {}) {
    std::vector<std::string> words = command("check-config");
    words.emplace_back("--connect");
    words.insert(words.end(), flags.begin(), flags.end());
    std::vector<std::string> all = environment();
    all.insert(all.end(), more_environment.begin(), more_environment.end());
    return testing::run(words, {.environment = all, .input = {}});
  }
  // By a clock that is ahead of the servers'.
  Finished examine_ahead(std::chrono::milliseconds ahead) {
    return examine({}, {std::string("LD_PRELOAD=") + FCAP_SHIFTED_CLOCK,
                        "FCAP_PRELOADED_CLOCK_AHEAD_MS=" + std::to_string(ahead.count())});
  }
  // Exit code 1, and a line that holds all of these. On a busy machine a server may answer too
  // late; then the line says that instead.
  void expect_error(const std::vector<std::string>& parts) {
    Finished done{};
    EXPECT_TRUE(testing::wait_until([&] {
      done = examine();
      return done.exit_code == 1 && has_error(done.output, parts);
    })) << ::testing::PrintToString(parts)
        << "\n"
        << done.output << done.errors;
  }
  static bool has_error(const std::string& output, const std::vector<std::string>& parts) {
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
      const bool all = std::ranges::all_of(
          parts, [&](const std::string& part) { return line.find(part) != std::string::npos; });
      if (all && line.starts_with("error")) return true;
    }
    return false;
  }
  void use_account(const std::string& name, const std::vector<std::string>& rights) {
    std::vector<std::string> words = {"ACL", "SETUSER", name, "on", ">" + name};
    words.insert(words.end(), rights.begin(), rights.end());
    ASSERT_EQ(redis_->command(words), "OK");
  }

  static inline KafkaBroker* kafka = nullptr;
  static inline std::unique_ptr<PostgresServer> postgres;
  std::unique_ptr<RedisServer> redis_;
  std::string topic_;
  std::string brokers_;
  std::string redis_address_;
  std::string redis_user_;
  std::string conninfo_;
  std::vector<std::string> more_;
};

TEST_F(Doctor, WhereAllIsWellNothingMustChange) {
  make_topics();
  conninfo_ = postgres->new_database();
  const Finished done = examine();
  EXPECT_EQ(done.exit_code, 0) << done.output << done.errors;
  EXPECT_THAT(done.output, Not(HasSubstr("error")));
  EXPECT_THAT(done.output, AllOf(HasSubstr("ok       kafka"), HasSubstr("ok       redis"),
                                 HasSubstr("ok       postgres")));
  EXPECT_EQ(redis_->number({"DBSIZE"}), 0) << "the probe is taken away";
  const auto json = nlohmann::json::parse(examine({"--json"}).output, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["ok"], true);
  EXPECT_EQ(json["findings"][0]["server"], "kafka");
}

TEST_F(Doctor, TopicsThatAreMissingAreNamed) {
  expect_error({"kafka.topic: the topic " + topic_ + " does not exist", "create it"});
  expect_error({"kafka.dead_letter_topic: the topic " + topic_ + ".dead does not exist"});
}

TEST_F(Doctor, ATopicThatForgetsEarlierThanTheLedgersIsNamed) {
  make_topics({"retention.ms=604800000", "cleanup.policy=compact"});
  expect_error({"retention.ms is 604800000 (7d)", "set it to 2764800000"});
  expect_error({"cleanup.policy is compact", "set it to delete"});
}

TEST_F(Doctor, AServerThatIsNotThereIsNamedWithWhatTheNetworkSaid) {
  make_topics();
  brokers_ = "127.0.0.1:1";
  expect_error({"no broker answers", "kafka.brokers", "refused"});
  brokers_.clear();
  redis_address_ = "127.0.0.1:1";
  expect_error({"redis.addresses 127.0.0.1:1", "refused"});
  redis_address_.clear();
  conninfo_ = "host=127.0.0.1 port=1 dbname=fcap";
  expect_error({"postgres.conninfo", "refused"});
}

TEST_F(Doctor, AWrongPasswordOfRedisIsNamed) {
  make_topics();
  redis_user_ = "nobody";
  expect_error({"redis", "WRONGPASS"});
}

TEST_F(Doctor, ARedisThatMayEvictIsNamed) {
  make_topics();
  redis_->command({"CONFIG", "SET", "maxmemory", "100mb"});
  redis_->command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  expect_error({"maxmemory-policy is allkeys-lru", "set it to noeviction"});
}

TEST_F(Doctor, WhatAnAccountOfRedisMayNotDoIsNamed) {
  make_topics();
  use_account("narrow", kUpdaterRights);
  redis_user_ = "narrow";
  // A server of a busy machine may miss the seconds that the doctor gives it.
  Finished fine{};
  EXPECT_TRUE(testing::wait_until([&] {
    fine = examine();
    return fine.exit_code == 0;
  })) << fine.output;
  for (const std::string command : {"append", "pexpireat", "evalsha", "get"}) {
    redis_->command({"ACL", "SETUSER", "narrow", "-" + command});
    expect_error({"the account narrow may not use", "NOPERM", command});
    redis_->command({"ACL", "SETUSER", "narrow", "+" + command});
  }
  for (const std::string command : {"set", "del", "pexpiretime"}) {
    redis_->command({"ACL", "SETUSER", "narrow", "-" + command});
    expect_error({"the account narrow may not use one of GET, SET, DEL and PEXPIRETIME"});
    redis_->command({"ACL", "SETUSER", "narrow", "+" + command});
  }
  redis_->command({"ACL", "SETUSER", "narrow", "resetkeys", "~other:*"});
  expect_error({"the account narrow may not use GET on fcap:", "NOPERM"});
}

TEST_F(Doctor, ClocksThatDifferAreNamed) {
  make_topics();
  conninfo_ = postgres->new_database();
  const Finished behind = examine_ahead(std::chrono::seconds{-20});
  EXPECT_EQ(behind.exit_code, 0) << "a warning: " << behind.output;
  EXPECT_THAT(behind.output, ::testing::ContainsRegex("warning  redis     its clock is [0-9]+ ms "
                                                      "ahead of this machine's: synchronize"));
  EXPECT_THAT(behind.output, ::testing::ContainsRegex("warning  postgres  its clock is [0-9]+ ms "
                                                      "ahead of this machine's: synchronize"));
  const Finished ahead = examine_ahead(std::chrono::hours{1});
  EXPECT_EQ(ahead.exit_code, 1) << ahead.output;
  EXPECT_THAT(ahead.output, ::testing::ContainsRegex("error    redis     its clock is [0-9]+ ms "
                                                     "behind this machine's: synchronize"));
}

TEST_F(Doctor, AnUpdaterThatIsSetDifferentlyIsNamed) {
  make_topics();
  redis_->command({"SET", "fcap:!config", "no configuration"});
  expect_error({"fcap:!config was not written by fcap"});
}

TEST_F(Doctor, ADatabaseWithoutTheSchemaOrWithAnOldOneIsNamed) {
  make_topics();
  conninfo_ = postgres->new_empty_database();
  expect_error({"tables do not exist", "fcap-migrate"});
  conninfo_ = postgres->new_database();
  postgres->sql(conninfo_, "UPDATE fcap_schema_migrations SET name = '0007_rule_operations'");
  expect_error({"the schema is at", "run fcap-migrate"});
}

TEST_F(Doctor, AReaderThatMayNotReadTheRulesIsNamed) {
  make_topics();
  const std::string admin = postgres->new_database();
  postgres->sql(admin, "DROP ROLE IF EXISTS doctor_blind; CREATE ROLE doctor_blind LOGIN");
  conninfo_ = admin + " user=doctor_blind";
  expect_error({"the rules cannot be loaded", "permission denied"});
}

TEST_F(Doctor, AWrongPasswordOfPostgresIsNamedAndNotShown) {
  make_topics();
  conninfo_ = postgres->new_database();
  postgres->sql(conninfo_, "CREATE ROLE doctor_secretive LOGIN PASSWORD 'right'");
  postgres->add_access_rule("host all doctor_secretive all scram-sha-256");
  conninfo_ += " user=doctor_secretive";
  // The server obeys a moment after it was told.
  Finished done{};
  EXPECT_TRUE(wait_until([&] {
    done = examine({}, {"FCAP_UPDATER_POSTGRES_PASSWORD=hunter2"});
    return done.exit_code == 1;
  })) << done.output;
  EXPECT_THAT(done.output, AllOf(HasSubstr("postgres.conninfo: no connection"),
                                 HasSubstr("password authentication failed"),
                                 HasSubstr("postgres.password_file"), Not(HasSubstr("hunter2"))));
}

// `run` looks by itself, on each connection and every hour.
TEST_F(Doctor, ARunningUpdaterSaysThatRedisMayEvict) {
  make_topics();
  redis_->command({"CONFIG", "SET", "maxmemory", "100mb"});
  redis_->command({"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"});
  more_ = {"--http.port", "0"};
  Process updater(command("run"));
  std::string url;
  EXPECT_TRUE(wait_until(
      [&] {
        const std::string log = updater.errors();
        const std::size_t at = log.find("http://");
        if (at == std::string::npos) return false;
        url = log.substr(at, log.find("/metrics", at) - at);
        return true;
      },
      kPatience));
  const auto page = [&](const std::string& path) {
    return testing::run({"curl", "-s", url + path}).output;
  };
  EXPECT_TRUE(wait_until(
      [&] { return page("/readyz").find("maxmemory-policy is allkeys-lru") != std::string::npos; },
      kPatience))
      << page("/readyz") << updater.errors();
  EXPECT_THAT(page("/metrics"), HasSubstr("fcap_updater_redis_may_evict 1\n"));
  EXPECT_THAT(page("/metrics"), HasSubstr("fcap_updater_redis_evicted_keys 0\n"));
  updater.send_signal(SIGTERM);
  EXPECT_EQ(updater.wait(), 0) << updater.errors();
}

// The updater counts, the command checks, shows and erases, each with nothing but its own rights.
TEST_F(Doctor, TheDocumentedAccountsAreEnough) {
  make_topics();
  use_account("updater", kUpdaterRights);
  use_account("command", kCommandRights);
  redis_user_ = "updater";
  more_ = {"--http.port", "0", "--pipeline.commit_interval", "50ms", "--compaction.quiet_after",
           "1s"};
  Process updater(command("run"), {.environment = environment(), .input = {}});
  KafkaProducer producer(kafka->brokers());
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  for (int i = 0; i < 3; ++i) {
    const testing::MadeEvent event{
        .user_id = "u1", .campaign_id = "c1", .event_id = "e" + std::to_string(i), .time = now};
    producer.send(topic_, "u1", event.json());
  }
  producer.flush();
  const testing::TemporaryDirectory directory;
  const std::string rules = directory.path() / "rules.json";
  std::ofstream(rules) << R"({"rules": [{"id": "r", "scope": "campaign", "target": "c1", "limit": 3,
                             "window": {"kind": "sliding", "length": "1d"}}]})";
  const auto fcap = [&](std::vector<std::string> words) {
    words.insert(words.begin(), FCAP_CLI_BINARY);
    return testing::run(
        words, {.environment = {"FCAP_REDIS=" + redis_->address(), "FCAP_REDIS_USER=command",
                                "FCAP_REDIS_PASSWORD=command", "FCAP_RULES_FILE=" + rules,
                                "FCAP_BROKERS=" + kafka->brokers(), "FCAP_TIMEOUT=30s"},
                .input = {}});
  };
  const auto check_says = [&](const std::string& verdict) {
    return wait_until(
        [&] {
          return fcap({"check", "u1", "c1"}).output.find(verdict) != std::string::npos;
        },
        kPatience);
  };
  EXPECT_TRUE(check_says("capped")) << fcap({"check", "u1", "c1"}).errors << updater.errors();
  const Finished shown = fcap({"show", "u1"});
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_THAT(shown.output, Not(HasSubstr("nothing is recorded")));
  const Finished erased = fcap({"erase", "u1", "--yes", "--topic", topic_});
  EXPECT_EQ(erased.exit_code, 0) << erased.errors;
  EXPECT_TRUE(check_says("allowed")) << updater.errors();
  updater.send_signal(SIGTERM);
  EXPECT_EQ(updater.wait(), 0) << updater.errors();
  EXPECT_THAT(updater.errors(), Not(HasSubstr("NOPERM")));
}

}  // namespace doctor_path_test
}  // namespace fcap
