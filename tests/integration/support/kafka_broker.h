#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/time.h>

#include "kafka/kafka_client.h"
#include "support/process.h"
#include "support/service.h"

namespace fcap::testing {

/// A message as it lies in a topic.
struct TopicMessage {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::string key;
  std::string value;
  bool has_key = true;  // null is not the empty string
  bool has_value = true;
  std::map<std::string, std::string> headers;
};

/// A name for a topic and its group that no other test has on the shared broker, nor this one when
/// it runs again: the suite's and test's, the process, and a number.
std::string unique_topic();

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

  /// The broker of all tests that leave it as they found it: the one that ctest has handed to
  /// this process, or else one for this process.
  static KafkaBroker& shared();

  /// With accounts: a second listener (SASL PLAIN, an account's password is its name) at which each
  /// may do only what allow() has granted. `settings`: properties of the server, "name=value".
  explicit KafkaBroker(const std::vector<std::string>& accounts = {},
                       const std::vector<std::string>& settings = {});

  /// "127.0.0.1:port" of the listener for accounts.
  [[nodiscard]] const std::string& accounts_brokers() const {
    return service_.value("accounts_brokers");
  }
  /// The same of a listener that was asked for by the setting fcap.listeners
  /// (scripts/kafka_server.py). `name`: in lower case.
  [[nodiscard]] const std::string& brokers_at(const std::string& name) const {
    return service_.value(name + "_brokers");
  }
  /// Grants an account one right, such as {RD_KAFKA_RESOURCE_TOPIC, "impressions",
  /// RD_KAFKA_ACL_OPERATION_READ}. The broker obeys a moment later.
  struct Right {
    rd_kafka_ResourceType_t on = RD_KAFKA_RESOURCE_TOPIC;
    std::string name;
    rd_kafka_AclOperation_t operation = RD_KAFKA_ACL_OPERATION_READ;
  };
  void allow(const std::string& account, const Right& right) const;
  /// Takes all rights from an account.
  void forbid_all(const std::string& account) const;

  /// "127.0.0.1:port".
  [[nodiscard]] const std::string& brokers() const { return service_.value("brokers"); }
  [[nodiscard]] int pid() const { return service_.pid(); }

  void create_topic(const std::string& name, int partitions,
                    const std::vector<std::string>& settings = {});
  /// Adds partitions to a topic until it has so many.
  void add_partitions(const std::string& name, std::size_t partitions) const;
  /// Deletes a topic, and what groups have committed of it.
  void delete_topic(const std::string& name) const;
  void start() { service_.start(); }
  /// Starts it again with other settings than the constructor's.
  void start(const std::vector<std::string>& accounts, const std::vector<std::string>& settings);
  void stop() { service_.stop(); }
  void kill() { service_.kill(); }
  void freeze() { service_.freeze(); }
  void thaw() { service_.thaw(); }

  /// Everything that a topic of `partitions` partitions holds now.
  [[nodiscard]] std::vector<TopicMessage> read_all(const std::string& topic, int partitions) const;
  /// The dead letters in a topic of one partition, each once: one whose acknowledgement a busy
  /// broker owes for too long is sent again.
  [[nodiscard]] std::vector<TopicMessage> read_letters(const std::string& topic) const;
  /// The sum of a group's committed offsets over a topic's partitions; partitions without one: 0.
  [[nodiscard]] std::int64_t committed_sum(const std::string& group, const std::string& topic,
                                           int partitions) const;
  /// Deletes everything that a topic of `partitions` partitions holds now, as retention would.
  void delete_records(const std::string& topic, int partitions) const;
  /// Commits a group's offset, as one of its members would.
  void commit(const std::string& group, const std::string& topic, int partition,
              std::int64_t offset) const;
  /// The offset after a partition's last message.
  [[nodiscard]] std::int64_t end(const std::string& topic, int partition) const;
  /// The sum of the partitions' ends.
  [[nodiscard]] std::int64_t end_sum(const std::string& topic, int partitions) const;

 private:
  /// One that somebody else has started in this directory.
  explicit KafkaBroker(const std::filesystem::path& running);

  TemporaryDirectory directory_;
  Service service_;
  // The client of committed_sum(), which is asked over and over: a new client has to find the
  // group's coordinator first.
  mutable std::mutex committed_mutex_;
  mutable kafka::KafkaClient committed_client_;
  mutable std::string committed_group_;  // the client's
};

/// Sends messages and counts what the broker has acknowledged. Retries by itself, in order, without
/// doubling (idempotent), so a broker that is restarted loses and doubles nothing.
///
/// Thread safety: none; one thread.
class KafkaProducer {
 public:
  /// `transactional_id`: empty: messages stand in the log at once. Otherwise each must be sent
  /// within a transaction.
  explicit KafkaProducer(const std::string& brokers, const std::string& transactional_id = {});
  ~KafkaProducer();
  KafkaProducer(const KafkaProducer&) = delete;
  KafkaProducer& operator=(const KafkaProducer&) = delete;

  static constexpr std::int32_t kByKey = -1;

  /// Queues a message; waits while the queue is full. Throws when the broker refuses it for good.
  /// `key` and `value` are null in the topic where the view has no data.
  void send(const std::string& topic, std::string_view key, std::string_view value,
            std::int32_t partition = kByKey);
  /// The same by a producer whose clock shows this time; none: the true one.
  void send_at(std::optional<Instant> time, const std::string& topic, std::string_view key,
               std::string_view value, std::int32_t partition = kByKey);
  void begin_transaction();
  void commit_transaction();
  void abort_transaction();
  /// Waits until everything sent is acknowledged; throws if something is not, within five minutes.
  void flush();

 private:
  kafka::KafkaClient client_;
  std::uint64_t failed_ = 0;
};

}  // namespace fcap::testing
