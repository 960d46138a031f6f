// The fcap command on a real cluster, by the account that is shipped for it; and what fcap-updater
// says of a cluster's configuration.
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/append_event.h"
#include "support/cluster_test.h"
#include "support/expected_ledgers.h"
#include "support/kafka_broker.h"
#include "support/process.h"
#include "support/shipped_account.h"
#include "test_paths.h"

namespace fcap {
namespace cluster_programs_path_test {

using nlohmann::json;
using testing::Certificates;
using testing::Finished;
using ::testing::HasSubstr;
using testing::MadeEvent;
using testing::RedisCluster;
using testing::SlotMove;

constexpr const char* kRules =
    R"({"version": 1, "campaigns": [],
        "rules": [{"id": "once", "scope": "campaign", "target": "c1", "limit": 1,
                   "window": {"kind": "sliding", "length": "24h"}}]})";

// An hour ago, so that an audit does not wait for it.
MadeEvent shown(const std::string& user) {
  const Instant now =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  return {.user_id = user,
          .campaign_id = "c1",
          .event_id = "e-" + user,
          .time = now - std::chrono::hours(1)};
}

// Counts an event, as the updater does.
void write(Store& store, const MadeEvent& event) {
  testing::append_event(store, event, event.time + std::chrono::days(1));
}

class CommandOnCluster : public testing::ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    if (IsSkipped()) return;
    give_account("reader");
    std::ofstream(rules_) << kRules;
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
      write(*store_, shown(RedisCluster::user_of(shard)));
    }
  }

  // Each node has accounts of its own.
  void give_account(const std::string& role) const {
    std::vector<std::string> account = {"ACL", "SETUSER", "fcap-" + role, "on", ">secret"};
    for (const std::string& right : testing::shipped_rights(role)) account.push_back(right);
    for (int node = 0; node < RedisCluster::kMembers; ++node) {
      EXPECT_EQ(cluster_->command(node, account), "OK");
    }
  }

  // For the tests that need one.
  static testing::KafkaBroker& kafka() { return testing::KafkaBroker::shared(); }

  [[nodiscard]] Finished fcap(std::vector<std::string> words,
                              const std::string& timeout = "30s") const {
    words.insert(words.begin(), FCAP_CLI_BINARY);
    return testing::run(
        words, {.environment = {"FCAP_REDIS=" + cluster_->url(), "FCAP_REDIS_USER=fcap-reader",
                                "FCAP_REDIS_PASSWORD=secret", "FCAP_RULES_FILE=" + rules_,
                                "FCAP_TIMEOUT=" + timeout},
                .input = {}});
  }

  void expect_answers(int shard) const {
    const std::string user = RedisCluster::user_of(shard);
    const Finished check = fcap({"check", user, "c1", "c2", "--json"});
    ASSERT_EQ(check.exit_code, 0) << check.errors;
    const json verdicts = json::parse(check.output)["verdicts"];
    EXPECT_EQ(verdicts[0]["allowed"], false);
    EXPECT_EQ(verdicts[1]["allowed"], true);
    const Finished explain = fcap({"explain", user, "c1"});
    EXPECT_EQ(explain.exit_code, 0) << explain.errors;
    EXPECT_THAT(explain.output, HasSubstr("stands in the way"));
    const Finished show = fcap({"show", user, "--json"});
    ASSERT_EQ(show.exit_code, 0) << show.errors;
    EXPECT_EQ(json::parse(show.output)["entry_count"], 1);
    EXPECT_GT(json::parse(show.output)["ttl_ms"].get<std::int64_t>(), 0);
  }

  [[nodiscard]] json show(const std::string& user) const {
    const Finished finished = fcap({"show", user, "--json"});
    EXPECT_EQ(finished.exit_code, 0) << finished.errors;
    return json::parse(finished.output, nullptr, false);
  }
  // Waits until the user's record has so many entries, and is erased up to this instant.
  [[nodiscard]] bool comes_to(const std::string& user, int entries,
                              const json& erased_until = nullptr) const {
    return testing::wait_until([&] {
      const json shown = show(user);
      return shown["entry_count"] == entries && shown["erased_before"] == erased_until;
    });
  }

  testing::TemporaryDirectory files_;
  const std::string rules_ = files_.path() / "rules.json";
};

TEST_F(CommandOnCluster, AnswersForUsersOfEveryShard) {
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) expect_answers(shard);
}

TEST_F(CommandOnCluster, TakesTheClusterFromTheUpdatersFile) {
  const std::string file = files_.path() / "updater.json";
  std::ofstream(file) << fmt::format(
      R"({{"kafka": {{"brokers": ["127.0.0.1:1"]}},
           "redis": {{"topology": "cluster", "addresses": ["{}", "{}"]}}}})",
      cluster_->address(1), cluster_->address(2));
  const std::string user = RedisCluster::user_of(0);
  const Finished show = testing::run({FCAP_CLI_BINARY, "--config", file, "show", user, "--json"});
  ASSERT_EQ(show.exit_code, 0) << show.errors;
  EXPECT_EQ(json::parse(show.output)["entry_count"], 1);
}

TEST_F(CommandOnCluster, FindsARecordWhileItsSlotMoves) {
  const int slot = redis::slot_of("{" + RedisCluster::user_of(0) + "}");
  const SlotMove move(*cluster_, 0, 1, {slot, slot});
  move.begin();
  expect_answers(0);
  EXPECT_EQ(move.move_keys(), 1U);
  expect_answers(0);
  move.end();
  expect_answers(0);
}

TEST_F(CommandOnCluster, AShardThatIsAwayKeepsOnlyItsOwnUsersFromBeingAnswered) {
  // Else nodes answer nobody while one shard is away.
  for (int node = 0; node < RedisCluster::kMembers; ++node) {
    ASSERT_EQ(cluster_->command(node, {"CONFIG", "SET", "cluster-require-full-coverage", "no"}),
              "OK");
  }
  cluster_->kill(cluster_->replica(0));
  cluster_->kill(cluster_->master(0));
  expect_answers(1);
  expect_answers(2);
  const std::string user = RedisCluster::user_of(0);
  const Finished show = fcap({"show", user}, "2s");
  EXPECT_EQ(show.exit_code, 1);
  EXPECT_THAT(show.errors, HasSubstr(fmt::format("slot {}", redis::slot_of("{" + user + "}"))));
  EXPECT_THAT(show.errors, HasSubstr("--redis"));
}

TEST_F(CommandOnCluster, ItsAccountCannotWrite) {
  RedisOptions options = this->options();
  options.user = "fcap-reader";
  options.password = "secret";
  const auto client = testing::connected(options);
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    const std::string key = "fcap:{" + RedisCluster::user_of(shard) + "}";
    for (const auto& words : {std::initializer_list<std::string_view>{"APPEND", key, "x"},
                              std::initializer_list<std::string_view>{"DEL", key}}) {
      testing::RedisCall call(words);
      call.slot = redis::slot_of(key);
      call.on(*client);
      EXPECT_TRUE(call.is_error);
      EXPECT_THAT(call.text, HasSubstr("NOPERM"));
    }
    expect_answers(shard);
  }
}

// Accounts, clocks and settings are each node's own.
TEST_F(CommandOnCluster, TheCheckOfTheUpdatersConfigurationNamesTheNodeThatMustChange) {
  give_account("writer");
  const auto findings = [this] {
    return testing::run(
               {FCAP_UPDATER_BINARY, "check-config", "--connect", "--kafka.brokers", "127.0.0.1:1"},
               {.environment = {"FCAP_UPDATER_REDIS_ADDRESSES=" + cluster_->url(),
                                "FCAP_UPDATER_REDIS_USER=fcap-writer",
                                "FCAP_UPDATER_REDIS_PASSWORD=secret"},
                .input = {}})
        .output;
  };
  const auto fine = [this](int node) {
    return "ok       redis     node " + cluster_->address(node) +
           ": the account fcap-writer may do what the updater needs";
  };
  const std::string all = findings();
  for (int node = 0; node < RedisCluster::kShards; ++node) EXPECT_THAT(all, HasSubstr(fine(node)));
  ASSERT_EQ(cluster_->command(1, {"ACL", "SETUSER", "fcap-writer", "-append"}), "OK");
  const std::string one_less = findings();
  EXPECT_THAT(one_less, HasSubstr(fine(0)));
  EXPECT_THAT(one_less, HasSubstr("node " + cluster_->address(1) +
                                  ": the account fcap-writer may not use APPEND"));
  EXPECT_THAT(one_less, HasSubstr(fine(2)));
  for (int node = 0; node < RedisCluster::kShards; ++node) {
    EXPECT_EQ(cluster_->command(node, {"DBSIZE"}), "1") << "the probe is taken away";
  }
}

TEST_F(CommandOnCluster, AuditsUsersOfAllShards) {
  if (!testing::KafkaBroker::available()) GTEST_SKIP() << "java or mvn is missing";
  const std::string topic = testing::unique_topic();
  kafka().create_topic(topic, 3);
  testing::KafkaProducer producer(kafka().brokers());
  const auto users = RedisCluster::users_in({0, 16383}, 300);
  for (const std::string& user : users) {
    const MadeEvent event = shown("audited-" + user);
    producer.send(topic, event.user_id, event.json());
    if (user != users.back()) write(*store_, event);
  }
  producer.flush();
  const Finished audit = fcap({"audit", "--topic", topic, "--brokers", kafka().brokers(),
                               "--propagation-ms", "0", "--json"});
  ASSERT_EQ(audit.exit_code, 1) << audit.output << audit.errors;  // one is lost
  ASSERT_FALSE(audit.output.empty()) << audit.errors;
  const json report = json::parse(audit.output);
  EXPECT_EQ(report["produced"], users.size());
  EXPECT_EQ(report["counted"], users.size() - 1);
  EXPECT_EQ(report["lost"], 1);
}

TEST_F(CommandOnCluster, UsersOfEachShardStayErasedThroughAReplayOfTheTopic) {
  if (!testing::KafkaBroker::available()) GTEST_SKIP() << "java or mvn is missing";
  const std::string topic = testing::unique_topic();
  kafka().create_topic(topic, 3);
  give_account("writer");
  const auto updater = [&](const std::string& command) {
    return std::make_unique<testing::Process>(
        std::vector<std::string>{FCAP_UPDATER_BINARY, command, "--redis.addresses", cluster_->url(),
                                 "--redis.user", "fcap-writer", "--kafka.brokers",
                                 kafka().brokers(), "--kafka.topic", topic, "--kafka.group_id",
                                 topic, "--kafka.dead_letter_topic", ""},
        testing::Process::Options{.environment = {"FCAP_UPDATER_REDIS_PASSWORD=secret",
                                                  "FCAP_UPDATER_HTTP_ENABLED=false"},
                                  .input = {}});
  };
  struct User {
    std::string id;
    bool erased;
    json until = nullptr;
  };
  std::vector<User> users;
  testing::KafkaProducer producer(kafka().brokers());
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    const auto ids = RedisCluster::users_in(RedisCluster::slots_of(shard), 3);
    users.push_back({.id = ids[1], .erased = true});
    users.push_back({.id = ids[2], .erased = false});
  }
  for (const User& user : users) {
    for (const char* id : {"i1", "i2"}) {
      MadeEvent event = shown(user.id);
      event.event_id = id;
      producer.send(topic, event.user_id, event.json());
    }
  }
  producer.flush();
  const auto running = updater("run");
  for (const User& user : users) ASSERT_TRUE(comes_to(user.id, 2)) << running->errors();

  for (User& user : users) {
    if (!user.erased) continue;
    const Finished erased = fcap(
        {"erase", user.id, "--yes", "--json", "--brokers", kafka().brokers(), "--topic", topic});
    ASSERT_EQ(erased.exit_code, 0) << erased.errors;
    user.until = json::parse(erased.output)["erased_until"];
  }
  const auto expect_erased = [&] {
    for (const User& user : users) {
      EXPECT_TRUE(comes_to(user.id, user.erased ? 0 : 2, user.until)) << show(user.id);
    }
  };
  expect_erased();
  // One of them has lost everything, the mark of the erasure included.
  ASSERT_EQ(cluster_->command(0, {"DEL", "fcap:{" + users.front().id + "}"}), "1");
  const auto replaying = updater("replay");
  EXPECT_EQ(replaying->wait(), 0) << replaying->errors();
  expect_erased();
}

TEST(CommandOnEncryptedCluster, Answers) {
  if (!testing::RedisServer::available() || !Certificates::available()) {
    GTEST_SKIP() << "redis-server, redis-cli or openssl is missing";
  }
  const Certificates authority("fcap test authority");
  const RedisCluster cluster(authority.ca_file(), authority.issue("server", "IP:127.0.0.1"));
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    const Finished show =
        testing::run({FCAP_CLI_BINARY, "--redis", cluster.url(), "--redis-ca-file",
                      authority.ca_file(), "show", RedisCluster::user_of(shard)});
    EXPECT_EQ(show.exit_code, 0) << show.errors;
    EXPECT_THAT(show.output, HasSubstr("nothing is recorded"));
  }
}

}  // namespace cluster_programs_path_test
}  // namespace fcap
