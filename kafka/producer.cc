#include "kafka/producer.h"

#include <utility>

#include <fmt/format.h>

namespace fcap::kafka {
namespace {

rd_kafka_headers_t* headers_of(const OutgoingMessage& message) {
  rd_kafka_headers_t* headers = rd_kafka_headers_new(message.headers.size());
  for (const auto& [name, value] : message.headers) {
    rd_kafka_header_add(headers, name.data(), static_cast<ssize_t>(name.size()), value.data(),
                        static_cast<ssize_t>(value.size()));
  }
  return headers;
}

Delivery delivery_of(rd_kafka_resp_err_t code) noexcept {
  switch (code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      return Delivery::kDelivered;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
      return Delivery::kTooLarge;
    default:
      return Delivery::kFailed;
  }
}

}  // namespace

Producer::Producer(std::string topic, LogCallback log)
    : topic_(std::move(topic)), log_(std::move(log)) {}

Result<std::unique_ptr<Producer>> Producer::create(const Connection& connection, std::string topic,
                                                   LogCallback log) {
  const Properties defaults = {
      {"acks", "all"},
      {"linger.ms", "5"},
      // A topic's size limit applies to compressed messages, and this one may have been compressed
      // when it was first sent.
      {"compression.type", "lz4"},
      // After this time librdkafka reports the message as failed, and the sender reports it and
      // tries again. librdkafka checks once per second.
      {"message.timeout.ms", "5000"},
      // Large enough for any message that could be read, headers included.
      {"message.max.bytes", "16000000"}};
  auto conf = make_conf(connection, defaults, {});
  if (!conf.ok()) return conf.status();

  std::unique_ptr<Producer> self(new Producer(std::move(topic), std::move(log)));
  rd_kafka_conf_t* raw = conf.value().get();
  rd_kafka_conf_set_opaque(raw, self.get());
  rd_kafka_conf_set_dr_msg_cb(
      raw, [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
        const auto* producer = static_cast<Producer*>(opaque);
        producer->answer(message->err, *static_cast<DeliveryReport*>(message->_private));
      });
  rd_kafka_conf_set_log_cb(
      raw, [](const rd_kafka_t* handle, int, const char* facility, const char* text) {
        const auto* producer = static_cast<const Producer*>(rd_kafka_opaque(handle));
        if (producer->log_) {
          producer->log_(LogLevel::kDebug, fmt::format("kafka: {}: {}", facility, text));
        }
      });
  auto client = make_client(RD_KAFKA_PRODUCER, std::move(conf).value());
  if (!client.ok()) return client.status();
  self->handle_ = std::move(client).value();
  self->poller_ = std::jthread([handle = self->handle_.get()](const std::stop_token& stop) {
    constexpr int kPollMs = 100;
    while (!stop.stop_requested()) rd_kafka_poll(handle, kPollMs);
  });
  return self;
}

Producer::~Producer() {
  if (!handle_) return;
  poller_.request_stop();
  if (poller_.joinable()) poller_.join();
  constexpr int kFlushMs = 1000;
  if (rd_kafka_flush(handle_.get(), kFlushMs) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(handle_.get(), kFlushMs);
  }
}

void Producer::send(const OutgoingMessage& message, DeliveryReport& report) noexcept {
  rd_kafka_headers_t* headers = headers_of(message);
  const std::string_view value = message.value.value_or(std::string_view{});
  const std::string_view key = message.key.value_or(std::string_view{});
  // An empty view has no address of its own, and without one librdkafka sends null.
  const auto address = [](const std::optional<std::string_view>& view) {
    return view && view->data() == nullptr ? "" : view ? view->data() : nullptr;
  };
  const auto code = rd_kafka_producev(
      handle_.get(), RD_KAFKA_V_TOPIC(topic_.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
      RD_KAFKA_V_VALUE(const_cast<char*>(address(message.value)), value.size()),
      RD_KAFKA_V_KEY(address(message.key), key.size()), RD_KAFKA_V_HEADERS(headers),
      RD_KAFKA_V_OPAQUE(&report), RD_KAFKA_V_END);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  rd_kafka_headers_destroy(headers);
  answer(code, report);
}

void Producer::answer(rd_kafka_resp_err_t code, DeliveryReport& report) const noexcept {
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return report.delivered(Delivery::kDelivered, {});
  report.delivered(delivery_of(code), fmt::format("topic {}: {}", topic_, rd_kafka_err2str(code)));
}

}  // namespace fcap::kafka
