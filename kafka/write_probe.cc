#include "kafka/write_probe.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kafka/kafka_client.h"
#include "kafka/last_error.h"

namespace fcap::kafka {
namespace {

struct ProbeAnswer {
  std::optional<rd_kafka_resp_err_t> code;
  LastError last_error;
};

// What the account's own properties say of acknowledgements and retries is for real messages.
ConnectionOptions without_delivery_properties(ConnectionOptions connection) {
  for (const char* const name :
       {"acks", "request.required.acks", "enable.idempotence", "enable.gapless.guarantee",
        "transactional.id", "retries", "message.send.max.retries"}) {
    connection.properties.erase(name);
  }
  return connection;
}

Status probe_status(const std::string& topic, const ProbeAnswer& answer) {
  // The broker has looked at the rights, and then refused two acknowledgements.
  if (answer.code == RD_KAFKA_RESP_ERR_INVALID_REQUIRED_ACKS) return {};
  const auto code = answer.code.value_or(RD_KAFKA_RESP_ERR__MSG_TIMED_OUT);
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return {};  // an older broker: written, so it may
  return answer.last_error.failure("writing to topic " + topic, code);
}

}  // namespace

Status try_writing(const ConnectionOptions& connection, const std::string& topic,
                   std::chrono::milliseconds answer_within) {
  const auto until = std::chrono::steady_clock::now() + answer_within;
  auto conf = make_conf(
      without_delivery_properties(connection),
      {{"linger.ms", "0"}, {"message.timeout.ms", std::to_string(answer_within.count())}},
      {{"acks", "2"}, {"enable.idempotence", "false"}, {"message.send.max.retries", "0"}});
  if (!conf.ok()) return conf.status();
  const auto answer = std::make_shared<ProbeAnswer>();
  answer->last_error.listen(*conf.value());
  rd_kafka_conf_set_dr_msg_cb(conf.value().get(),
                              [](rd_kafka_t*, const rd_kafka_message_t* message, void*) {
                                static_cast<ProbeAnswer*>(message->_private)->code = message->err;
                              });
  const auto made = KafkaClient::create(RD_KAFKA_PRODUCER, std::move(conf).value(), answer);
  if (!made.ok()) return made.status();
  rd_kafka_t* const client = made.value().get();
  char probe[] = "fcap-updater check-config";
  const auto queued = rd_kafka_producev(
      client, RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
      RD_KAFKA_V_VALUE(probe, sizeof probe - 1), RD_KAFKA_V_OPAQUE(answer.get()), RD_KAFKA_V_END);
  if (queued != RD_KAFKA_RESP_ERR_NO_ERROR) answer->code = queued;
  constexpr int kPollMs = 50;
  while (!answer->code && std::chrono::steady_clock::now() < until) {
    rd_kafka_poll(client, kPollMs);
  }
  rd_kafka_purge(client, kPurgeAll);
  return probe_status(topic, *answer);
}

}  // namespace fcap::kafka
