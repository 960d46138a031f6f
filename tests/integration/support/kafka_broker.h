#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kafka/handles.h"
#include "support/process.h"
#include "support/service.h"

namespace fcap::testing {

/// A message as it lies in a topic.
struct TopicMessage {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::string key;
  std::string value;
  std::map<std::string, std::string> headers;
};

/// A private Kafka broker (KRaft, one process), started by scripts/service.
///
///     if (!KafkaBroker::available()) GTEST_SKIP() << "java or mvn is missing";
///     KafkaBroker kafka;
///     kafka.create_topic("impressions", 3);
class KafkaBroker {
 public:
  /// Whether this machine can run one.
  static bool available() {
    return present(has_program("java") && has_program("mvn"), "java or mvn is missing");
  }

  KafkaBroker();

  /// "127.0.0.1:port".
  [[nodiscard]] const std::string& brokers() const { return service_.value("brokers"); }

  void create_topic(const std::string& name, int partitions,
                    const std::vector<std::string>& settings = {});
  /// Deletes a topic, and what groups have committed of it.
  void delete_topic(const std::string& name) const;
  void start() { service_.start(); }
  void stop() { service_.stop(); }
  void kill() { service_.kill(); }
  void freeze() { service_.freeze(); }
  void thaw() { service_.thaw(); }

  /// Everything that a topic of `partitions` partitions holds now.
  [[nodiscard]] std::vector<TopicMessage> read_all(const std::string& topic, int partitions) const;
  /// The sum of a group's committed offsets over a topic's partitions; partitions without one: 0.
  [[nodiscard]] std::int64_t committed_sum(const std::string& group, const std::string& topic,
                                           int partitions) const;
  /// Deletes everything that a topic of `partitions` partitions holds now, as retention would.
  void delete_records(const std::string& topic, int partitions) const;
  /// The sum of the partitions' ends.
  [[nodiscard]] std::int64_t end_sum(const std::string& topic, int partitions) const;

 private:
  TemporaryDirectory directory_;
  Service service_;
};

/// Sends messages and counts what the broker has acknowledged. Retries by itself, in order, without
/// doubling (idempotent), so a broker that is restarted loses and doubles nothing.
///
/// Thread safety: none; one thread.
class KafkaProducer {
 public:
  explicit KafkaProducer(const std::string& brokers);
  ~KafkaProducer();
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  static constexpr std::int32_t kByKey = -1;

  /// Queues a message; waits while the queue is full. Throws when the broker refuses it for good.
  void send(const std::string& topic, std::string_view key, std::string_view value,
            std::int32_t partition = kByKey);
  /// Waits until everything sent is acknowledged; throws if something is not, within a minute.
  void flush();

 private:
  kafka::Ptr<rd_kafka_t> handle_;
  std::uint64_t failed_ = 0;
};

}  // namespace fcap::testing
