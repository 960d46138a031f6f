#include "kafka/message.h"

namespace fcap::kafka {

std::optional<std::string_view> key_of(const rd_kafka_message_t& message) noexcept {
  if (message.key == nullptr) return std::nullopt;
  return std::string_view(static_cast<const char*>(message.key), message.key_len);
}

std::string_view payload_of(const rd_kafka_message_t& message) noexcept {
  return {static_cast<const char*>(message.payload), message.len};
}

std::int64_t timestamp_ms(const rd_kafka_message_t& message) noexcept {
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t ms = rd_kafka_message_timestamp(&message, &type);
  // A time below 0 is a producer's mistake, and counts as none: a mark that named it could not be
  // read again.
  return type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || ms < 0 ? -1 : ms;
}

bool has_append_time(const rd_kafka_message_t& message) noexcept {
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  (void)rd_kafka_message_timestamp(&message, &type);
  return type == RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME;
}

std::optional<std::string_view> header_of(const rd_kafka_message_t& message,
                                          const char* name) noexcept {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  std::size_t bytes = 0;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, name, &value, &bytes) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return std::nullopt;
  }
  return std::string_view(static_cast<const char*>(value), bytes);
}

std::vector<std::pair<std::string, std::string>> headers_of(const rd_kafka_message_t& message) {
  std::vector<std::pair<std::string, std::string>> found;
  rd_kafka_headers_t* headers = nullptr;
  if (rd_kafka_message_headers(&message, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) return found;
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t bytes = 0;
  for (std::size_t i = 0;
       rd_kafka_header_get_all(headers, i, &name, &value, &bytes) == RD_KAFKA_RESP_ERR_NO_ERROR;
       ++i) {
    found.emplace_back(name, std::string(static_cast<const char*>(value), bytes));
  }
  return found;
}

}  // namespace fcap::kafka
