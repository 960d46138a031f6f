#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <fcap/checker.h>

#include "support/kafka_broker.h"
#include "support/postgres_server.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "support/reference_caps.h"

namespace fcap::testing {

/// A private Redis and PostgreSQL with the tables, a topic of the shared Kafka, and the
/// fcap-updater program between them.
class WholePath {
 public:
  static constexpr int kPartitions = 3;

  /// Whether this machine can run all of them.
  static bool available();

  WholePath();

  /// Runs `fcap-updater run`, with commits and marks so often that drain() is quick.
  void start_updater();
  /// SIGTERM, and waits; the exit code.
  int stop_updater();
  /// SIGKILL.
  void kill_updater();
  /// `fcap-updater replay` with these flags, to its end.
  Finished replay(const std::vector<std::string>& flags);
  /// The `fcap` command, with the flags that reach these servers.
  Finished fcap(std::vector<std::string> words, const std::string& input = {});

  void produce(const SeenEvent& event);
  /// Waits until all that was produced is acknowledged, and the updater has committed all of it.
  /// If it does not, the result says what it has committed, and what it has logged.
  ::testing::AssertionResult drain(std::chrono::milliseconds patience = std::chrono::seconds(60));

  /// A Checker over these servers; its rules come from this PostgreSQL.
  [[nodiscard]] std::unique_ptr<Checker> make_checker() const;
  /// What the updater has written to standard error so far.
  [[nodiscard]] std::string updater_log() const;

  /// Also the name of the updater's group.
  const std::string topic = unique_topic();
  RedisServer redis;
  KafkaBroker& kafka = KafkaBroker::shared();
  PostgresServer postgres;
  std::string conninfo;
  KafkaProducer producer;

 private:
  TemporaryDirectory directory_;
  std::string config_file_;
  std::unique_ptr<Process> updater_;
  std::int64_t produced_ = 0;
};

/// The message of the topic.
std::string to_json(const SeenEvent& event);

}  // namespace fcap::testing
