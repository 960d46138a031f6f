#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fcap/status.h>

#include "kafka/conf.h"
#include "kafka/kafka_client.h"
#include "kafka/last_error.h"

namespace fcap::kafka {

/// Where a message was stored.
struct StoredPosition {
  std::int32_t partition = 0;
  std::int64_t offset = 0;
};

/// Publishes single messages and waits for each: for what people do by hand, not for a stream.
///
///     auto publisher = Publisher::open({.brokers = "10.0.0.7:9092"});
///     auto position = publisher.value()->publish("impressions", "u1", message, 5s);
///
/// Not thread-safe.
class Publisher {
 public:
  /// Fails on a property that librdkafka does not know; connects to nobody yet.
  static Result<std::unique_ptr<Publisher>> open(const ConnectionOptions& connection);

  /// Gives up what is on its way, and ends the client (see KafkaClient).
  ~Publisher();
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;

  /// Publishes to an existing topic (it makes none, whatever the broker would) and waits until all
  /// in-sync replicas have the message. On a failure that may be retried its fate can be unknown:
  /// it may stand in the topic all the same. `timeout` is at least a millisecond.
  Result<StoredPosition> publish(const std::string& topic, std::string_view key,
                                 std::string_view value, std::chrono::milliseconds timeout);

 private:
  struct PublishReport {
    bool ended = false;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    StoredPosition position;
  };

  // What librdkafka may use for as long as the client lives.
  struct PublisherContext {
    LastError last_error;
    // One for the message that is on its way, and for each before it that librdkafka never
    // reported.
    std::deque<PublishReport> deliveries;
  };

  Publisher(std::shared_ptr<PublisherContext> context, KafkaClient client)
      : context_(std::move(context)), client_(std::move(client)) {}
  Status check_topic(const std::string& topic, std::chrono::milliseconds timeout);

  const std::shared_ptr<PublisherContext> context_;
  const KafkaClient client_;
};

}  // namespace fcap::kafka
