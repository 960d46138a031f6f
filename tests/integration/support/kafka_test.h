#pragma once

#include <algorithm>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "support/kafka_broker.h"
#include "support/redis_server.h"

namespace fcap::testing {

/// A broker for all tests of the binary; a Redis and a topic for each. Without them the tests are
/// skipped; a fixture that overrides SetUp() calls this one's and returns if IsSkipped().
class KafkaTest : public ::testing::Test {
 protected:
  static constexpr int kPartitions = 3;

  // Each instantiation of a parameterized suite is a suite of its own: the broker stays for the
  // next one.
  static void SetUpTestSuite() {
    if (!kafka && KafkaBroker::available() && RedisServer::available()) {
      kafka = std::make_unique<KafkaBroker>();
    }
  }

  void SetUp() override {
    if (!kafka) GTEST_SKIP() << "java, mvn, redis-server or redis-cli is missing";
    redis_ = std::make_unique<RedisServer>();
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    topic_ = std::string(test->test_suite_name()) + "." + test->name();
    std::replace(topic_.begin(), topic_.end(), '/', '.');  // behind an instantiation's name
    kafka->create_topic(topic_, kPartitions);
    kafka->create_topic(topic_ + ".dead", 1);
    producer_ = std::make_unique<KafkaProducer>(kafka->brokers());
  }

  static inline std::unique_ptr<KafkaBroker> kafka;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<KafkaProducer> producer_;
  std::string topic_;
};

}  // namespace fcap::testing
