#include "updater/pipeline/dead_letter_producer.h"

#include <utility>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

void add_header(rd_kafka_headers_t* headers, const char* name, std::string_view value) {
  rd_kafka_header_add(headers, name, -1, value.data(), static_cast<ssize_t>(value.size()));
}

rd_kafka_headers_t* headers_of(const DeadLetter& letter) {
  constexpr std::size_t kHeaders = 8;
  rd_kafka_headers_t* headers = rd_kafka_headers_new(kHeaders);
  for (const auto& [name, value] : letter.headers) add_header(headers, name.c_str(), value);
  add_header(headers, "fcap.reason", events::to_string(letter.reason));
  if (!letter.member.empty()) add_header(headers, "fcap.member", letter.member);
  add_header(headers, "fcap.topic", letter.topic);
  add_header(headers, "fcap.partition", std::to_string(letter.partition));
  add_header(headers, "fcap.offset", std::to_string(letter.offset));
  if (letter.timestamp_ms >= 0) {
    add_header(headers, "fcap.timestamp_ms", std::to_string(letter.timestamp_ms));
  }
  if (letter.bytes_before_cut > 0) {
    add_header(headers, "fcap.truncated", "true");
    add_header(headers, "fcap.bytes", std::to_string(letter.bytes_before_cut));
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

DeadLetterProducer::DeadLetterProducer(std::string topic, LogCallback log)
    : topic_(std::move(topic)), log_(std::move(log)) {}

Result<std::unique_ptr<DeadLetterProducer>> DeadLetterProducer::create(
    const kafka::Connection& connection, std::string topic, LogCallback log) {
  const std::map<std::string, std::string> defaults = {
      {"acks", "all"},
      {"linger.ms", "5"},
      // A topic's limit is for what is compressed, and the message was perhaps sent so.
      {"compression.type", "lz4"},
      // After it the message is reported as failed, and its partition waits and tries again.
      {"message.timeout.ms", "10000"},
      // Whatever could be read can be sent on, headers included.
      {"message.max.bytes", "16000000"}};
  auto conf = kafka::make_conf(connection, defaults, {});
  if (!conf.ok()) return conf.status();

  std::unique_ptr<DeadLetterProducer> self(
      new DeadLetterProducer(std::move(topic), std::move(log)));
  rd_kafka_conf_t* raw = conf.value().get();
  rd_kafka_conf_set_opaque(raw, self.get());
  rd_kafka_conf_set_dr_msg_cb(
      raw, [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
        const auto* producer = static_cast<DeadLetterProducer*>(opaque);
        producer->answer(message->err, *static_cast<DeadLetterCompletion*>(message->_private));
      });
  rd_kafka_conf_set_log_cb(
      raw, [](const rd_kafka_t* handle, int, const char* facility, const char* text) {
        const auto* producer = static_cast<const DeadLetterProducer*>(rd_kafka_opaque(handle));
        if (producer->log_) {
          producer->log_(LogLevel::kDebug, fmt::format("kafka: {}: {}", facility, text));
        }
      });
  char text[512] = {};
  self->handle_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, raw, text, sizeof text));
  if (!self->handle_) {
    return Status::error(StatusCode::kInvalidArgument, fmt::format("kafka producer: {}", text));
  }
  (void)conf.value().release();  // the handle owns it now
  self->poller_ = std::jthread([handle = self->handle_.get()](const std::stop_token& stop) {
    constexpr int kPollMs = 100;
    while (!stop.stop_requested()) rd_kafka_poll(handle, kPollMs);
  });
  return self;
}

DeadLetterProducer::~DeadLetterProducer() {
  if (!handle_) return;
  poller_.request_stop();
  if (poller_.joinable()) poller_.join();
  constexpr int kFlushMs = 1000;
  if (rd_kafka_flush(handle_.get(), kFlushMs) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(handle_.get(), kFlushMs);
  }
}

void DeadLetterProducer::send(const DeadLetter& letter, DeadLetterCompletion& done) noexcept {
  rd_kafka_headers_t* headers = headers_of(letter);
  const auto code = rd_kafka_producev(
      handle_.get(), RD_KAFKA_V_TOPIC(topic_.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
      RD_KAFKA_V_VALUE(letter.has_payload ? const_cast<char*>(letter.payload.data()) : nullptr,
                       letter.payload.size()),
      RD_KAFKA_V_KEY(letter.has_key ? letter.key.data() : nullptr, letter.key.size()),
      RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(&done), RD_KAFKA_V_END);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  rd_kafka_headers_destroy(headers);
  answer(code, done);
}

void DeadLetterProducer::answer(rd_kafka_resp_err_t code,
                                DeadLetterCompletion& done) const noexcept {
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return done.delivered(Delivery::kDelivered, {});
  done.delivered(delivery_of(code), fmt::format("topic {}: {}", topic_, rd_kafka_err2str(code)));
}

}  // namespace fcap::updater
