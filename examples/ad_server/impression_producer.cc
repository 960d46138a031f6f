#include "impression_producer.h"

#include <array>
#include <cstdio>
#include <stdexcept>
#include <thread>

#include <librdkafka/rdkafka.h>

namespace ad_server {
namespace {

// Ids come from a log file or this program; only what JSON needs is escaped.
void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  for (const char character : text) {
    if (character == '"' || character == '\\') {
      out.push_back('\\');
      out.push_back(character);
    } else if (static_cast<unsigned char>(character) < 0x20) {
      std::array<char, 8> escaped{};
      std::snprintf(escaped.data(), escaped.size(), "\\u%04x",
                    static_cast<unsigned>(static_cast<unsigned char>(character)));
      out.append(escaped.data());
    } else {
      out.push_back(character);
    }
  }
  out.push_back('"');
}

std::string to_json(const PublishedImpression& impression) {
  std::string json = "{\"user_id\":";
  append_json_string(json, impression.user);
  json += ",\"campaign_id\":";
  append_json_string(json, impression.campaign);
  if (!impression.creative.empty()) {
    json += ",\"creative_id\":";
    append_json_string(json, impression.creative);
  }
  json += ",\"timestamp\":" + std::to_string(fcap::to_ms(impression.at)) + ",\"imp_id\":";
  append_json_string(json, impression.id);
  json += "}";
  return json;
}

void set(rd_kafka_conf_t* conf, const char* name, const char* value) {
  std::array<char, 256> text{};
  if (rd_kafka_conf_set(conf, name, value, text.data(), text.size()) != RD_KAFKA_CONF_OK) {
    rd_kafka_conf_destroy(conf);
    throw std::runtime_error(std::string("--brokers: ") + text.data());
  }
}

}  // namespace

struct ImpressionProducer::PollThread {
  std::jthread thread;
};

ImpressionProducer::ImpressionProducer(const std::string& brokers, std::string topic)
    : topic_(std::move(topic)) {
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  set(conf, "bootstrap.servers", brokers.c_str());
  set(conf, "enable.idempotence", "true");
  set(conf, "linger.ms", "2");
  set(conf, "log_level", "3");  // errors; a broker that is still starting is none
  rd_kafka_conf_set_opaque(conf, this);
  rd_kafka_conf_set_dr_msg_cb(conf, &ImpressionProducer::on_delivery);
  std::array<char, 256> text{};
  client_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size());
  if (client_ == nullptr) {
    rd_kafka_conf_destroy(conf);
    throw std::runtime_error(std::string("--brokers: ") + text.data());
  }
  poll_thread_ = std::make_unique<PollThread>();
  poll_thread_->thread = std::jthread([this] {
    while (!stopping_.load()) rd_kafka_poll(client_, 50);
  });
}

ImpressionProducer::~ImpressionProducer() {
  stopping_ = true;
  poll_thread_.reset();
  rd_kafka_destroy(client_);
}

bool ImpressionProducer::publish(const PublishedImpression& impression) {
  const std::string json = to_json(impression);
  while (true) {
    // librdkafka owns the headers of a message that it takes.
    rd_kafka_headers_t* headers = nullptr;
    if (!impression.reason.empty()) {
      headers = rd_kafka_headers_new(1);
      rd_kafka_header_add(headers, "fcap_reason", -1, impression.reason.data(),
                          static_cast<ssize_t>(impression.reason.size()));
    }
    const rd_kafka_resp_err_t code = rd_kafka_producev(
        client_, RD_KAFKA_V_TOPIC(topic_.c_str()),
        RD_KAFKA_V_KEY(impression.user.data(), impression.user.size()),
        RD_KAFKA_V_VALUE(const_cast<char*>(json.data()), json.size()), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return true;
    if (headers != nullptr) rd_kafka_headers_destroy(headers);
    if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL || stopping_.load()) {
      failed_.fetch_add(1);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool ImpressionProducer::flush(std::chrono::milliseconds wait) {
  return rd_kafka_flush(client_, static_cast<int>(wait.count())) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

void ImpressionProducer::on_delivery(rd_kafka_s*, const rd_kafka_message_s* message, void* opaque) {
  auto* self = static_cast<ImpressionProducer*>(opaque);
  (message->err == RD_KAFKA_RESP_ERR_NO_ERROR ? self->acknowledged_ : self->failed_).fetch_add(1);
}

}  // namespace ad_server
