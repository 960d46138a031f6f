#pragma once

#include <cstdint>
#include <string_view>

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

}  // namespace fcap::updater
