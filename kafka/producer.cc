#include "kafka/producer.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <list>
#include <mutex>
#include <utility>
#include <vector>

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

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kAnswerWithin{10};

// librdkafka looks once per second whether its own time for a message is over.
std::chrono::milliseconds answer_within(const rd_kafka_conf_t& conf) {
  char text[32] = {};
  std::size_t size = sizeof text;
  (void)rd_kafka_conf_get(&conf, "message.timeout.ms", text, &size);
  const std::chrono::milliseconds own{std::atoll(text)};
  return std::max<std::chrono::milliseconds>(kAnswerWithin, own + kAnswerWithin / 2);
}

}  // namespace

// What librdkafka may use for as long as the client lives, and what it owes.
struct Producer::ProducerContext {
  ProducerContext(std::string to, LogCallback callback, std::chrono::milliseconds patience)
      : topic(std::move(to)), log(std::move(callback)), answer_within(patience) {}

  // A message that librdkafka has not answered yet.
  struct Pending {
    DeliveryReport* report;  // null: it was given up
    Clock::time_point until;
    std::list<Pending>::iterator self;
  };

  Pending& expect(DeliveryReport& report);
  void answer(Pending& pending, rd_kafka_resp_err_t code) noexcept;
  void give_up(Clock::time_point due) noexcept;

  const std::string topic;
  const LogCallback log;
  const std::chrono::milliseconds answer_within;

 private:
  void tell(DeliveryReport& report, rd_kafka_resp_err_t code) const;

  std::mutex mutex_;
  std::list<Pending> pending_;  // the oldest first
};

Producer::ProducerContext::Pending& Producer::ProducerContext::expect(DeliveryReport& report) {
  const std::lock_guard lock(mutex_);
  pending_.push_back({&report, Clock::now() + answer_within, {}});
  pending_.back().self = std::prev(pending_.end());
  return pending_.back();
}

void Producer::ProducerContext::answer(Pending& pending, rd_kafka_resp_err_t code) noexcept {
  DeliveryReport* report = nullptr;
  {
    const std::lock_guard lock(mutex_);
    report = pending.report;
    pending_.erase(pending.self);
  }
  if (report != nullptr) tell(*report, code);
}

void Producer::ProducerContext::give_up(Clock::time_point due) noexcept {
  std::vector<DeliveryReport*> overdue;
  {
    const std::lock_guard lock(mutex_);
    for (Pending& pending : pending_) {
      if (pending.until > due) break;
      if (pending.report != nullptr) overdue.push_back(std::exchange(pending.report, nullptr));
    }
  }
  for (DeliveryReport* const report : overdue) tell(*report, RD_KAFKA_RESP_ERR__TIMED_OUT);
}

void Producer::ProducerContext::tell(DeliveryReport& report, rd_kafka_resp_err_t code) const {
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return report.delivered(Delivery::kDelivered, {});
  report.delivered(delivery_of(code), fmt::format("topic {}: {}", topic, rd_kafka_err2str(code)));
}

Producer::Producer(std::shared_ptr<ProducerContext> context) : context_(std::move(context)) {}

Result<std::unique_ptr<Producer>> Producer::create(const ConnectionOptions& connection,
                                                   std::string topic, LogCallback log) {
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

  const auto context = std::make_shared<ProducerContext>(std::move(topic), std::move(log),
                                                         answer_within(*conf.value()));
  rd_kafka_conf_t* raw = conf.value().get();
  rd_kafka_conf_set_opaque(raw, context.get());
  rd_kafka_conf_set_dr_msg_cb(
      raw, [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
        static_cast<ProducerContext*>(opaque)->answer(
            *static_cast<ProducerContext::Pending*>(message->_private), message->err);
      });
  rd_kafka_conf_set_log_cb(
      raw, [](const rd_kafka_t* handle, int, const char* facility, const char* text) {
        const LogCallback& to = static_cast<const ProducerContext*>(rd_kafka_opaque(handle))->log;
        if (to) to(LogLevel::kDebug, fmt::format("kafka: {}: {}", facility, text));
      });
  auto client = KafkaClient::create(RD_KAFKA_PRODUCER, std::move(conf).value(), context);
  if (!client.ok()) return client.status();
  std::unique_ptr<Producer> self(new Producer(context));
  self->client_ = std::move(client).value();
  self->poller_ = std::jthread([producer = self.get()](const std::stop_token& stop) {
    constexpr int kPollMs = 100;
    while (!stop.stop_requested()) {
      rd_kafka_poll(producer->client_.get(), kPollMs);
      producer->context_->give_up(Clock::now());
    }
  });
  return self;
}

Producer::~Producer() {
  poller_.request_stop();
  if (poller_.joinable()) poller_.join();
  constexpr int kFlushMs = 1000;
  if (rd_kafka_flush(client_.get(), kFlushMs) != RD_KAFKA_RESP_ERR_NO_ERROR) {
    rd_kafka_purge(client_.get(), kPurgeAll);
    rd_kafka_flush(client_.get(), kFlushMs);
    context_->give_up(Clock::time_point::max());
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
  ProducerContext::Pending& pending = context_->expect(report);
  const auto code =
      rd_kafka_producev(client_.get(), RD_KAFKA_V_TOPIC(context_->topic.c_str()),
                        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                        RD_KAFKA_V_VALUE(const_cast<char*>(address(message.value)), value.size()),
                        RD_KAFKA_V_KEY(address(message.key), key.size()),
                        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(&pending), RD_KAFKA_V_END);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return;
  rd_kafka_headers_destroy(headers);
  context_->answer(pending, code);
}

}  // namespace fcap::kafka
