#include "kafka/groupless_consumer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace fcap::kafka {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kAskingForEnds = "asking for a partition's ends";

bool is_silence(rd_kafka_resp_err_t code) {
  return code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TRANSPORT ||
         code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
}

Status refused(std::string_view doing, rd_kafka_resp_err_t code) {
  return Status::error(is_silence(code) ? StatusCode::kDeadlineExceeded : StatusCode::kUnavailable,
                       fmt::format("{}: {}", doing, rd_kafka_err2str(code)), true);
}

std::chrono::milliseconds left(Clock::time_point until) {
  constexpr std::chrono::milliseconds kLeast{1};
  return std::max(kLeast,
                  std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()));
}

}  // namespace

Result<std::unique_ptr<GrouplessConsumer>> GrouplessConsumer::create(Options options) {
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
  auto client = KafkaClient::create(RD_KAFKA_CONSUMER, std::move(conf).value());
  if (!client.ok()) return client.status();
  rd_kafka_poll_set_consumer(client.value().get());
  return std::unique_ptr<GrouplessConsumer>(
      new GrouplessConsumer(std::move(options.topic), std::move(client).value()));
}

Status GrouplessConsumer::assign(std::span<const PartitionOffset> partitions) {
  unassign();
  while (const MessagePtr dropped{rd_kafka_consumer_poll(client_.get(), 0)}) {
  }
  const PartitionList list = make_partition_list(topic_, partitions);
  return status_of(rd_kafka_assign(client_.get(), list.get()), "assigning partitions");
}

void GrouplessConsumer::unassign() {
  rd_kafka_assign(client_.get(), nullptr);
}

GrouplessConsumer::Polled GrouplessConsumer::poll(std::chrono::milliseconds wait) {
  using PolledKind = Polled::PolledKind;
  Polled polled;
  MessagePtr message(rd_kafka_consumer_poll(client_.get(), to_int_ms(wait)));
  if (!message) return polled;
  polled.partition = message->rkt == nullptr ? kNoPartition : message->partition;
  polled.offset = message->offset;
  switch (message->err) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
      polled.is = PolledKind::kMessage;
      polled.message = std::move(message);
      return polled;
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
      polled.is = PolledKind::kEnd;
      return polled;
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      polled.is = PolledKind::kOutOfRange;
      break;
    default:
      polled.is = PolledKind::kError;
      break;
  }
  polled.error =
      Status::error(StatusCode::kUnavailable, rd_kafka_message_errstr(message.get()), true);
  return polled;
}

Result<GrouplessConsumer::Leaders> GrouplessConsumer::leaders(
    std::span<const std::int32_t> partitions, std::chrono::milliseconds timeout) {
  const Ptr<rd_kafka_topic_t> topic(rd_kafka_topic_new(client_.get(), topic_.c_str(), nullptr));
  if (!topic) return refused("topic " + topic_, rd_kafka_last_error());
  const rd_kafka_metadata_t* found = nullptr;
  const auto code = rd_kafka_metadata(client_.get(), 0, topic.get(), &found, to_int_ms(timeout));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return refused("asking for leaders", code);
  const Ptr<const rd_kafka_metadata_t> metadata(found);
  std::map<std::int32_t, std::int32_t> led;
  auto error = RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE;
  if (metadata->topic_cnt > 0) {
    const auto& about = metadata->topics[0];
    if (about.err != RD_KAFKA_RESP_ERR_NO_ERROR) error = about.err;
    for (int i = 0; i < about.partition_cnt; ++i) {
      if (about.partitions[i].leader >= 0) led[about.partitions[i].id] = about.partitions[i].leader;
    }
  }
  Leaders leaders;
  for (const std::int32_t partition : partitions) {
    const auto leader = led.find(partition);
    leaders.emplace(partition, leader == led.end()
                                   ? Result<std::int32_t>(refused("its leader", error))
                                   : Result<std::int32_t>(leader->second));
  }
  return leaders;
}

// The offsets of these partitions that ListOffsets names so. librdkafka reports an error of one
// partition as the error of the whole question, and then each partition is asked for alone.
Status GrouplessConsumer::look_up(rd_kafka_topic_partition_list_t& list, std::int64_t which,
                                  Clock::time_point until) {
  for (int i = 0; i < list.cnt; ++i) list.elems[i].offset = which;
  const auto code = rd_kafka_offsets_for_times(client_.get(), &list, to_int_ms(left(until)));
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  Status status = refused(kAskingForEnds, code);
  if (list.cnt == 1 || is_silence(code)) return status;
  for (int i = 0; i < list.cnt; ++i) {
    auto& of_list = list.elems[i];
    const PartitionList alone(rd_kafka_topic_partition_list_new(1));
    auto& asked = *rd_kafka_topic_partition_list_add(alone.get(), of_list.topic, of_list.partition);
    asked.offset = which;
    const auto error =
        rd_kafka_offsets_for_times(client_.get(), alone.get(), to_int_ms(left(until)));
    if (is_silence(error)) return refused(kAskingForEnds, error);
    of_list.offset = asked.offset;
    of_list.err = error != RD_KAFKA_RESP_ERR_NO_ERROR ? error : asked.err;
  }
  return {};
}

// This does not call rd_kafka_query_watermark_offsets(), because librdkafka 2.0.2 does not keep to
// its timeout if the leader's broker cannot be reached.
Result<GrouplessConsumer::Ends> GrouplessConsumer::watermarks(
    std::span<const std::int32_t> partitions, std::chrono::milliseconds timeout) {
  const auto until = Clock::now() + timeout;
  std::vector<PartitionOffset> at;
  at.reserve(partitions.size());
  for (const std::int32_t partition : partitions) at.push_back({partition});
  const PartitionList lows = make_partition_list(topic_, at);
  const PartitionList highs = make_partition_list(topic_, at);
  if (Status status = look_up(*lows, kLogBeginning, until); !status.ok()) return status;
  if (Status status = look_up(*highs, kLogEnd, until); !status.ok()) return status;
  Ends ends;
  for (int i = 0; i < lows->cnt; ++i) {
    const auto& low = lows->elems[i];
    const auto& high = highs->elems[i];
    const auto code = low.err != RD_KAFKA_RESP_ERR_NO_ERROR ? low.err : high.err;
    const auto index = static_cast<std::size_t>(i);
    ends.emplace(partitions[index], code != RD_KAFKA_RESP_ERR_NO_ERROR
                                        ? Result<Watermarks>(refused(kAskingForEnds, code))
                                        : Result<Watermarks>({low.offset, high.offset}));
  }
  return ends;
}

Result<Watermarks> GrouplessConsumer::watermarks(std::int32_t partition,
                                                 std::chrono::milliseconds timeout) {
  auto ends = watermarks(std::span(&partition, 1), timeout);
  if (!ends.ok()) return ends.status();
  return std::move(ends.value().at(partition));
}

std::string GrouplessConsumer::cluster_id(std::chrono::milliseconds timeout) {
  std::string id;
  if (char* const found = rd_kafka_clusterid(client_.get(), to_int_ms(timeout))) {
    id = found;
    rd_kafka_mem_free(client_.get(), found);
  }
  return id;
}

}  // namespace fcap::kafka
