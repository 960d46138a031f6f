#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/cluster_test.h"
#include "support/expected_ledgers.h"
#include "support/kafka_test.h"
#include "support/process.h"
#include "support/shipped_account.h"
#include "test_paths.h"
#include "tests/support/seed.h"

namespace fcap::testing {

/// A topic of its own and a real cluster for each test, and fcap-updater between them, with an
/// account that has the rights of redis/acl/writer.acl.
class UpdaterOnCluster : public KafkaTest {
 protected:
  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    cluster_ = std::make_unique<RedisCluster>();
    for (int node = 0; node < RedisCluster::kMembers; ++node) give_account(node);
    auto made = make_redis_store(options_of(cluster_->url()));
    ASSERT_TRUE(made.ok()) << made.status().text();
    store_ = std::move(made).value();
    ASSERT_TRUE(wait_until([this] { return store_->health().connected; }));
  }

  /// Each node has accounts of its own.
  void give_account(int node) const {
    std::vector<std::string> account = {"ACL", "SETUSER", "fcap-writer", "on", ">secret"};
    for (const std::string& right : shipped_rights("writer")) account.push_back(right);
    EXPECT_EQ(cluster_->command(node, account), "OK");
  }

  void produce(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const MadeEvent event = maker_.next();
      producer_->send(topic_, event.user_id, event.json());
      expected_.add(event);
    }
    producer_->flush();
  }

  /// Starts one of the program's commands, such as "replay".
  [[nodiscard]] std::unique_ptr<Process> start(const std::string& command,
                                               const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        FCAP_UPDATER_BINARY, command,       "--redis.addresses", cluster_->url(),
        "--redis.user",      "fcap-writer", "--kafka.brokers",   kafka->brokers(),
        "--kafka.topic",     topic_,        "--kafka.group_id",  topic_};
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<Process>(
        words,
        Process::Options{.environment = {"FCAP_UPDATER_REDIS_PASSWORD=secret"}, .input = {}});
  }

  /// Redis holds exactly what was produced.
  void expect_all_there(const Process& updater) const {
    const auto difference = expected_.compare(*store_);
    EXPECT_EQ(difference.missing, 0U) << updater.errors();
    EXPECT_EQ(difference.surplus, 0U) << updater.errors();
    EXPECT_EQ(difference.unreadable, 0U) << updater.errors();
  }

  std::unique_ptr<RedisCluster> cluster_;
  std::unique_ptr<Store> store_;
  EventMaker maker_{test_seed(20'261'125), 2'000};
  ExpectedLedgers expected_;
};

}  // namespace fcap::testing
