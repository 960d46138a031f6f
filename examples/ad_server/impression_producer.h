#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fcap/time.h>

struct rd_kafka_s;
struct rd_kafka_message_s;

namespace ad_server {

/// One impression as it is published.
struct PublishedImpression {
  std::string_view user;
  std::string_view campaign;
  std::string_view creative;
  std::string_view id;
  fcap::Instant at;
  /// Why it was shown without a look at the history; empty: there was one. Travels as a header.
  std::string_view reason = {};
};

/// Publishes impressions to Kafka, keyed by user. publish() may be called from many threads.
class ImpressionProducer {
 public:
  /// Throws std::runtime_error when the brokers' list or topic is not usable.
  ImpressionProducer(const std::string& brokers, std::string topic);
  ~ImpressionProducer();
  ImpressionProducer(const ImpressionProducer&) = delete;
  ImpressionProducer& operator=(const ImpressionProducer&) = delete;

  /// Blocks while the local queue is full. False when the message cannot be sent at all.
  bool publish(const PublishedImpression& impression);

  /// Waits until the brokers have acknowledged everything, at most `wait`.
  bool flush(std::chrono::milliseconds wait);

  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_.load(); }
  [[nodiscard]] std::uint64_t failed() const noexcept { return failed_.load(); }

 private:
  static void on_delivery(rd_kafka_s* client, const rd_kafka_message_s* message, void* self);

  std::string topic_;
  rd_kafka_s* client_ = nullptr;
  std::atomic<std::uint64_t> acknowledged_{0};
  std::atomic<std::uint64_t> failed_{0};
  std::atomic<bool> stopping_{false};
  struct PollThread;
  std::unique_ptr<PollThread> poll_thread_;
};

}  // namespace ad_server
