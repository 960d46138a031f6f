#include "updater/pipeline/message_view.h"

namespace fcap::updater {

MessageView::MessageView(const rd_kafka_message_t& message, std::string_view topic) noexcept
    : source_(&message), view_(kafka::payload_of(message)) {
  view_.topic = topic;
  view_.key = kafka::key_of(message);
  const std::int64_t ms = kafka::timestamp_ms(message);
  if (ms >= 0) view_.timestamp = instant_from_ms(ms);
  view_.headers = this;
}

std::optional<std::string_view> MessageView::find(const char* name) const noexcept {
  return kafka::header_of(*source_, name);
}

}  // namespace fcap::updater
