#include "updater/pipeline/message_view.h"

#include <cstddef>

namespace fcap::updater {

MessageView::MessageView(const rd_kafka_message_t& message, std::string_view topic) noexcept
    : source_(&message),
      view_(std::string_view(static_cast<const char*>(message.payload), message.len)) {
  view_.topic = topic;
  if (message.key != nullptr) {
    view_.key.emplace(static_cast<const char*>(message.key), message.key_len);
  }
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  const std::int64_t ms = rd_kafka_message_timestamp(&message, &type);
  if (type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE) view_.timestamp = instant_from_ms(ms);
  view_.headers = this;
}

std::optional<std::string_view> MessageView::find(const char* name) const noexcept {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  std::size_t bytes = 0;
  if (rd_kafka_message_headers(source_, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, name, &value, &bytes) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return std::nullopt;
  }
  return std::string_view(static_cast<const char*>(value), bytes);
}

}  // namespace fcap::updater
