#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <librdkafka/rdkafka_mock.h>

#include "kafka/kafka_client.h"

namespace fcap::kafka {

// In Kafka's protocol.
inline constexpr std::int16_t kListOffsets = 2;
inline constexpr std::int16_t kOffsetFetch = 9;
inline constexpr std::chrono::milliseconds kPatience{60'000};

/// librdkafka's own imitation of a cluster: real brokers do not refuse on demand. Its topic begins
/// with so many messages in its first partition. Brokers are numbered from 1 on.
class Cluster {
 public:
  explicit Cluster(int messages, const std::string& topic = "events", int partitions = 1,
                   int brokers = 1) {
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    char text[256] = {};
    rd_kafka_conf_set(conf, "test.mock.num.brokers", std::to_string(brokers).c_str(), text,
                      sizeof text);
    producer_ = KafkaClient::create(RD_KAFKA_PRODUCER, Ptr<rd_kafka_conf_t>(conf)).value();
    mock_ = rd_kafka_handle_mock_cluster(producer_.get());
    rd_kafka_mock_topic_create(mock_, topic.c_str(), partitions, 1);
    for (int i = 0; i < messages; ++i) produce(topic, 0);
    flush();
  }
  [[nodiscard]] std::string brokers() const { return rd_kafka_mock_cluster_bootstraps(mock_); }
  void produce(const std::string& topic, std::int32_t partition, const std::string& key = {},
               const std::string& value = "message") {
    rd_kafka_producev(producer_.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                      RD_KAFKA_V_PARTITION(partition), RD_KAFKA_V_KEY(key.data(), key.size()),
                      RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
                      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
  }
  void flush() { rd_kafka_flush(producer_.get(), static_cast<int>(kPatience.count())); }
  void lose_leader(const std::string& topic, std::int32_t partition) {
    rd_kafka_mock_partition_set_leader(mock_, topic.c_str(), partition, -1);
  }
  void elect_leader(const std::string& topic, std::int32_t partition, std::int32_t broker = 1) {
    rd_kafka_mock_partition_set_leader(mock_, topic.c_str(), partition, broker);
  }
  /// It cannot be reached any more, and still leads what it led.
  void stop_broker(std::int32_t broker) { rd_kafka_mock_broker_set_down(mock_, broker); }
  /// It takes requests, and answers none of them within a test's time.
  void freeze_broker(std::int32_t broker) {
    rd_kafka_mock_broker_set_rtt(mock_, broker, static_cast<int>(kPatience.count()));
  }
  /// The next so many requests, each for all of its partitions.
  void refuse_list_offsets(int times, rd_kafka_resp_err_t error) {
    for (int i = 0; i < times; ++i) {
      rd_kafka_mock_push_request_errors(mock_, kListOffsets, 1, error);
    }
  }
  void refuse_committed_offsets() {
    for (int i = 0; i < 1000; ++i) {
      rd_kafka_mock_push_request_errors(mock_, kOffsetFetch, 1, RD_KAFKA_RESP_ERR_NOT_COORDINATOR);
    }
  }

 private:
  KafkaClient producer_;
  rd_kafka_mock_cluster_t* mock_ = nullptr;
};

}  // namespace fcap::kafka
