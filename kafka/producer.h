#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fcap/log.h>
#include <fcap/status.h>

#include "kafka/conf.h"
#include "kafka/kafka_client.h"

namespace fcap::kafka {

/// What became of a message that was sent.
enum class Delivery : std::uint8_t {
  kDelivered,
  kTooLarge,  ///< for this topic; sending the same again cannot help
  kFailed,
};

/// Learns what became of a message. Called once, from any thread; must not block.
class DeliveryReport {
 public:
  /// `why`: of one that was not delivered, the broker's words; valid during the call.
  virtual void delivered(Delivery delivery, std::string_view why) noexcept = 0;

 protected:
  ~DeliveryReport() = default;
};

/// A message to send. The views need to live only during the call.
struct OutgoingMessage {
  std::optional<std::string_view> key;    ///< none: null, which is not an empty one
  std::optional<std::string_view> value;  ///< the same
  std::span<const std::pair<std::string, std::string>> headers = {};
};

/// Sends messages to one topic, many at a time, and reports what becomes of each within ten
/// seconds, or five more than the property `message.timeout.ms`, whatever librdkafka does: one that
/// it has not answered by then counts as failed, and may arrive later. What it was given is copied.
///
/// Thread safety: send() from any thread; reports come from its own thread, or from within send()
/// where a message is refused at once.
class Producer {
 public:
  static Result<std::unique_ptr<Producer>> create(const ConnectionOptions& connection,
                                                  std::string topic, LogCallback log);
  /// Ends what is under way: delivered within a second, or failed. Then ends the client (see
  /// KafkaClient).
  ~Producer();
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  void send(const OutgoingMessage& message, DeliveryReport& report) noexcept;

 private:
  struct ProducerContext;

  explicit Producer(std::shared_ptr<ProducerContext> context);

  const std::shared_ptr<ProducerContext> context_;
  KafkaClient client_;
  std::jthread poller_;
};

}  // namespace fcap::kafka
