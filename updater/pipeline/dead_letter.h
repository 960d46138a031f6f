#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "events/event_decoder.h"
#include "kafka/producer.h"

namespace fcap::updater {

/// A message that will never be written: its bytes, its position and the reason; or, for kRefused,
/// the frames that Redis refuses for one user, under the user's key in Redis. It owns its bytes,
/// because it is kept until the dead-letter topic has it.
struct DeadLetter {
  std::string payload;
  std::string key;
  bool has_payload = true;  ///< false: the message had none, which is not an empty one
  bool has_key = true;
  std::vector<std::pair<std::string, std::string>> headers;  ///< the message's own
  std::string topic;
  std::int32_t partition = 0;
  std::int64_t offset = 0;
  std::int64_t timestamp_ms = -1;  ///< the broker's; below 0: it has none
  events::Rejection reason = events::Rejection::kNotJson;
  std::string member;  ///< the member at fault, where one is; kRefused: the server's words
  /// Above 0: payload, key and headers were cut, because they were too large for the topic; the
  /// payload had this many bytes. Topic, partition and offset say where the original is.
  std::size_t bytes_before_cut = 0;

  [[nodiscard]] std::size_t weight_bytes() const noexcept;
  /// Keeps at most this much of it, so that a topic that refuses large messages accepts the rest.
  void cut(std::size_t payload_bytes_max, std::size_t key_bytes_max);
};

using kafka::Delivery;

/// Learns whether a dead letter has arrived.
using DeadLetterCompletion = kafka::DeliveryReport;

/// Where dead letters go. A message is not done before its dead letter is.
class DeadLetterSink {
 public:
  virtual ~DeadLetterSink() = default;
  /// Starts sending; `letter` lives until `done` has been called, which may happen before the call
  /// returns.
  virtual void send(const DeadLetter& letter, DeadLetterCompletion& done) noexcept = 0;
};

}  // namespace fcap::updater
