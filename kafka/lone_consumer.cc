#include "kafka/lone_consumer.h"

#include <utility>

#include <fmt/format.h>

namespace fcap::kafka {

Result<std::unique_ptr<LoneConsumer>> LoneConsumer::create(Options options) {
  const Properties fixed = {
      {"group.id", options.group_id},
      {"enable.auto.commit", "false"},
      {"enable.auto.offset.store", "false"},
      // Ends of partitions and offsets that do not exist come from poll().
      {"enable.partition.eof", "true"},
      {"auto.offset.reset", "error"},
  };
  // These properties are meant for the consumer in the group. This client joins no group.
  for (const char* own : {"auto.offset.reset", "group.instance.id"}) {
    options.connection.properties.erase(own);
  }
  auto conf = make_conf(options.connection, options.defaults, fixed);
  if (!conf.ok()) return conf.status();
  silence(*conf.value());
  auto client = make_client(RD_KAFKA_CONSUMER, std::move(conf).value());
  if (!client.ok()) return client.status();
  rd_kafka_poll_set_consumer(client.value().get());
  return std::unique_ptr<LoneConsumer>(
      new LoneConsumer(std::move(options.topics), std::move(client).value().release()));
}

Status LoneConsumer::assign(std::span<const PartitionOffset> partitions) {
  unassign();
  while (const MessagePtr dropped{rd_kafka_consumer_poll(handle_.get(), 0)}) {
  }
  const PartitionList list = make_partition_list(topics_, partitions);
  return status_of(rd_kafka_assign(handle_.get(), list.get()), "assigning partitions");
}

void LoneConsumer::unassign() {
  rd_kafka_assign(handle_.get(), nullptr);
}

LoneConsumer::Polled LoneConsumer::poll(std::chrono::milliseconds wait) {
  using Is = Polled::Is;
  Polled polled;
  MessagePtr message(rd_kafka_consumer_poll(handle_.get(), to_int_ms(wait)));
  if (!message) return polled;
  polled.partition = partition_of(topics_, *message);
  polled.offset = message->offset;
  switch (message->err) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      polled.is = Is::kMessage;
      polled.message = std::move(message);
      return polled;
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      polled.is = Is::kEnd;
      return polled;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      polled.is = Is::kOutOfRange;
      break;
    default:
      polled.is = Is::kError;
      break;
  }
  polled.error =
      Status::error(StatusCode::kUnavailable, rd_kafka_message_errstr(message.get()), true);
  return polled;
}

Result<Watermarks> LoneConsumer::watermarks(TopicPartition partition,
                                            std::chrono::milliseconds timeout) {
  Watermarks marks;
  const auto code = rd_kafka_query_watermark_offsets(
      handle_.get(), name_of(topics_, partition.topic).c_str(), partition.number, &marks.low,
      &marks.high, to_int_ms(timeout));
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return marks;
  const bool silent = code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TRANSPORT;
  return Status::error(silent ? StatusCode::kDeadlineExceeded : StatusCode::kUnavailable,
                       fmt::format("asking for a partition's ends: {}", rd_kafka_err2str(code)),
                       true);
}

std::string LoneConsumer::cluster_id(std::chrono::milliseconds timeout) {
  std::string id;
  if (char* const found = rd_kafka_clusterid(handle_.get(), to_int_ms(timeout))) {
    id = found;
    rd_kafka_mem_free(handle_.get(), found);
  }
  return id;
}

}  // namespace fcap::kafka
