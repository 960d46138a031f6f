#pragma once

#include <optional>
#include <string_view>

#include "events/event_decoder.h"
#include "kafka/message.h"

namespace fcap::updater {

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
