#include "updater/topic_producer.h"

#include <map>
#include <stdexcept>

#include "kafka/conf.h"

namespace fcap::bench {

TopicProducer::TopicProducer(const ProducerOptions& options) : topic_(options.topic) {
  auto conf = kafka::make_conf({.brokers = options.brokers, .client_id = "bench"},
                               {{"linger.ms", std::to_string(options.linger_ms)},
                                {"queue.buffering.max.messages", "500000"},
                                {"acks", "1"}},
                               {});
  if (!conf.ok()) throw std::runtime_error(conf.status().text());
  rd_kafka_conf_t* raw = conf.value().get();
  rd_kafka_conf_set_opaque(raw, this);
  rd_kafka_conf_set_dr_msg_cb(raw, [](rd_kafka_t*, const rd_kafka_message_t* message, void* self) {
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR) ++static_cast<TopicProducer*>(self)->failed_;
  });
  char text[256] = {};
  handle_.reset(rd_kafka_new(RD_KAFKA_PRODUCER, raw, text, sizeof text));
  if (!handle_) throw std::runtime_error(text);
  (void)conf.value().release();  // the handle owns it now
}

TopicProducer::~TopicProducer() {
  rd_kafka_purge(handle_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
}

void TopicProducer::send(std::string_view key, std::string_view value) {
  constexpr int kWaitMs = 100;
  for (;;) {
    const auto code = rd_kafka_producev(
        handle_.get(), RD_KAFKA_V_TOPIC(topic_.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_VALUE(const_cast<char*>(value.data()), value.size()),
        RD_KAFKA_V_KEY(key.data(), key.size()), RD_KAFKA_V_END);
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL) {
      if (code != RD_KAFKA_RESP_ERR_NO_ERROR) throw std::runtime_error(rd_kafka_err2str(code));
      rd_kafka_poll(handle_.get(), 0);
      return;
    }
    rd_kafka_poll(handle_.get(), kWaitMs);
  }
}

void TopicProducer::flush() {
  constexpr int kFlushMs = 60'000;
  if (rd_kafka_flush(handle_.get(), kFlushMs) != RD_KAFKA_RESP_ERR_NO_ERROR || failed_ > 0) {
    throw std::runtime_error("some messages were not delivered");
  }
}

}  // namespace fcap::bench
