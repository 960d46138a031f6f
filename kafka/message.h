#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kafka/handles.h"

namespace fcap::kafka {

/// What a message holds. The views live as long as the message.
using MessagePtr = Ptr<rd_kafka_message_t>;

[[nodiscard]] std::optional<std::string_view> key_of(const rd_kafka_message_t& message) noexcept;
[[nodiscard]] std::string_view payload_of(const rd_kafka_message_t& message) noexcept;
/// The broker's or the producer's time, as the topic is set; -1: the message has none.
[[nodiscard]] std::int64_t timestamp_ms(const rd_kafka_message_t& message) noexcept;
/// Whether timestamp_ms() is when the broker stored the message, by its own clock.
[[nodiscard]] bool has_append_time(const rd_kafka_message_t& message) noexcept;
/// The value of the last header of this name.
[[nodiscard]] std::optional<std::string_view> header_of(const rd_kafka_message_t& message,
                                                        const char* name) noexcept;
[[nodiscard]] std::vector<std::pair<std::string, std::string>> headers_of(
    const rd_kafka_message_t& message);

}  // namespace fcap::kafka
