#include "kafka/publisher.h"

#include <algorithm>
#include <memory>
#include <span>

#include <fmt/format.h>

namespace fcap::kafka {
namespace {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct MetadataDelete {
  void operator()(const rd_kafka_metadata_t* p) const noexcept { rd_kafka_metadata_destroy(p); }
};

}  // namespace

Result<std::unique_ptr<Publisher>> Publisher::open(const ConnectionOptions& connection) {
  auto conf = make_conf(connection, {}, {{"acks", "all"}});
  if (!conf.ok()) return conf.status();
  auto context = std::make_shared<PublisherContext>();
  context->last_error.listen(*conf.value());
  // Called from rd_kafka_poll(), so in the caller's thread.
  rd_kafka_conf_set_dr_msg_cb(conf.value().get(),
                              [](rd_kafka_t*, const rd_kafka_message_t* message, void*) {
                                *static_cast<PublishReport*>(message->_private) = {
                                    true, message->err, {message->partition, message->offset}};
                              });
  auto client = KafkaClient::create(RD_KAFKA_PRODUCER, std::move(conf).value(), context);
  if (!client.ok()) return client.status();
  return std::unique_ptr<Publisher>(new Publisher(std::move(context), std::move(client).value()));
}

Publisher::~Publisher() {
  rd_kafka_purge(client_.get(), kPurgeAll);
}

Status Publisher::check_topic(const std::string& topic, milliseconds timeout) {
  // Asks for all topics: asking for this one would make it on brokers that make topics by
  // themselves, and a name that was mistyped would look like a success.
  const rd_kafka_metadata_t* answer = nullptr;
  const auto code =
      rd_kafka_metadata(client_.get(), 1, nullptr, &answer, static_cast<int>(timeout.count()));
  rd_kafka_poll(client_.get(), 0);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return context_->last_error.failure("topic " + topic, code);
  const std::unique_ptr<const rd_kafka_metadata_t, MetadataDelete> metadata(answer);
  const std::span topics(metadata->topics, static_cast<std::size_t>(metadata->topic_cnt));
  const bool found = std::any_of(topics.begin(), topics.end(),
                                 [&](const auto& each) { return topic == each.topic; });
  if (found) return {};
  return Status::error(
      StatusCode::kNotFound,
      fmt::format("topic {}: does not exist, or this account may not see it", topic));
}

Result<StoredPosition> Publisher::publish(const std::string& topic, std::string_view key,
                                          std::string_view value, milliseconds timeout) {
  const auto until = steady_clock::now() + timeout;
  if (Status status = check_topic(topic, timeout); !status.ok()) return status;
  PublishReport& delivery = context_->deliveries.emplace_back();
  const auto code = rd_kafka_producev(
      client_.get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
      RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
      RD_KAFKA_V_KEY(key.data(), key.size()), RD_KAFKA_V_OPAQUE(&delivery), RD_KAFKA_V_END);
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    context_->deliveries.pop_back();
    return context_->last_error.failure("topic " + topic, code);
  }
  while (!delivery.ended && steady_clock::now() < until) {
    const auto left = duration_cast<milliseconds>(until - steady_clock::now());
    rd_kafka_poll(client_.get(), static_cast<int>(std::clamp<std::int64_t>(left.count(), 1, 100)));
  }
  if (!delivery.ended) {
    rd_kafka_purge(client_.get(), kPurgeAll);
    return context_->last_error.failure("topic " + topic, RD_KAFKA_RESP_ERR__TIMED_OUT);
  }
  const PublishReport ended = delivery;
  context_->deliveries.pop_back();
  if (ended.code != RD_KAFKA_RESP_ERR_NO_ERROR)
    return context_->last_error.failure("topic " + topic, ended.code);
  return ended.position;
}

}  // namespace fcap::kafka
