#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "support/kafka_broker.h"
#include "support/redis_server.h"

namespace fcap::testing {

/// The shared broker; a Redis and a topic for each test. Without them the tests are
/// skipped; a fixture that overrides SetUp() calls this one's and returns if IsSkipped().
class KafkaTest : public ::testing::Test {
 protected:
  static constexpr int kPartitions = 3;

  static void SetUpTestSuite() {
    if (KafkaBroker::available() && RedisServer::available()) kafka = &KafkaBroker::shared();
  }

  void SetUp() override {
    if (!kafka) GTEST_SKIP() << "java, mvn, redis-server or redis-cli is missing";
    redis_ = std::make_unique<RedisServer>();
    topic_ = unique_topic();
    kafka->create_topic(topic_, kPartitions);
    kafka->create_topic(topic_ + ".dead", 1);
    producer_ = std::make_unique<KafkaProducer>(kafka->brokers());
  }

  /// What the Redis has counted of a command: "calls", or "rejected_calls" of an account that may
  /// not use it.
  [[nodiscard]] long long command_count(const std::string& command,
                                        const std::string& of = "calls") const {
    const std::string stats = redis_->command({"INFO", "commandstats"});
    const auto line = stats.find("cmdstat_" + command + ":");
    if (line == std::string::npos) return 0;
    return std::stoll(stats.substr(stats.find(of + "=", line) + of.size() + 1));
  }

  static inline KafkaBroker* kafka = nullptr;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<KafkaProducer> producer_;
  std::string topic_;
};

}  // namespace fcap::testing
