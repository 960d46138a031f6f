#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "events/event_decoder.h"
#include "kafka/message.h"

namespace fcap::updater {

/// A message as it was delivered; the source of the message says how long its views live.
struct Delivered {
  std::int64_t offset = 0;
  std::int64_t timestamp_ms = -1;  ///< the broker's; -1: none
  std::string_view key = {};
  std::string_view payload = {};
};

[[nodiscard]] inline Delivered delivered_from(const rd_kafka_message_t& message) noexcept {
  return {message.offset, kafka::timestamp_ms(message), kafka::key_of(message).value_or(""),
          kafka::payload_of(message)};
}

/// A message of Kafka as decoders see it. The message must outlive it.
class MessageView final : private events::MessageHeaders {
 public:
  MessageView(const rd_kafka_message_t& message, std::string_view topic) noexcept;
  MessageView(const MessageView&) = delete;
  MessageView& operator=(const MessageView&) = delete;

  [[nodiscard]] const events::Message& message() const noexcept { return view_; }

 private:
  [[nodiscard]] std::optional<std::string_view> find(const char* name) const noexcept override;

  const rd_kafka_message_t* source_;
  events::Message view_;
};

}  // namespace fcap::updater
