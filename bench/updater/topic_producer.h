#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kafka/handles.h"

namespace fcap::bench {

struct ProducerOptions {
  std::string brokers;
  std::string topic;
  /// How long a message waits for others.
  int linger_ms = 20;
};

/// Sends messages by key. Throws when something goes wrong: a bench has no use for half a topic.
///
/// Thread safety: none.
class TopicProducer {
 public:
  explicit TopicProducer(const ProducerOptions& options);
  ~TopicProducer();
  TopicProducer(const TopicProducer&) = delete;
  TopicProducer& operator=(const TopicProducer&) = delete;

  /// Waits while librdkafka's queue is full.
  void send(std::string_view key, std::string_view value);
  /// Waits until everything is acknowledged.
  void flush();

 private:
  kafka::Ptr<rd_kafka_t> handle_;
  std::string topic_;
  std::uint64_t failed_ = 0;
};

}  // namespace fcap::bench
