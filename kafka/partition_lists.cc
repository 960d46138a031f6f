#include "kafka/partition_lists.h"

#include <algorithm>

#include <fmt/format.h>

namespace fcap::kafka {

std::optional<TopicIndex> index_of(const TopicNames& topics, std::string_view name) noexcept {
  const auto found = std::find(topics.begin(), topics.end(), name);
  if (found == topics.end()) return std::nullopt;
  return static_cast<TopicIndex>(found - topics.begin());
}

TopicPartition partition_of(const TopicNames& topics, const rd_kafka_message_t& message) noexcept {
  if (message.rkt == nullptr) return kNoPartition;
  const auto topic = index_of(topics, rd_kafka_topic_name(message.rkt));
  return topic ? TopicPartition{*topic, message.partition} : kNoPartition;
}

PartitionList make_partition_list(const TopicNames& topics,
                                  std::span<const PartitionOffset> partitions) {
  PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const PartitionOffset& at : partitions) {
    const std::string& topic = name_of(topics, at.partition.topic);
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), at.partition.number)->offset =
        at.offset;
  }
  return list;
}

std::vector<PartitionOffset> offsets_of(const TopicNames& topics,
                                        const rd_kafka_topic_partition_list_t& list) {
  std::vector<PartitionOffset> offsets;
  offsets.reserve(static_cast<std::size_t>(list.cnt));
  for (int i = 0; i < list.cnt; ++i) {
    const rd_kafka_topic_partition_t& at = list.elems[i];
    const auto topic = index_of(topics, at.topic);
    if (topic) offsets.push_back({{*topic, at.partition}, at.offset});
  }
  return offsets;
}

rd_kafka_resp_err_t first_error(const rd_kafka_topic_partition_list_t& list) noexcept {
  for (int i = 0; i < list.cnt; ++i) {
    if (list.elems[i].err != RD_KAFKA_RESP_ERR_NO_ERROR) return list.elems[i].err;
  }
  return RD_KAFKA_RESP_ERR_NO_ERROR;
}

Status status_of(rd_kafka_resp_err_t code, std::string_view doing) {
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return {};
  return Status::error(StatusCode::kUnavailable,
                       fmt::format("{}: {}", doing, rd_kafka_err2str(code)), true);
}

int to_int_ms(std::chrono::milliseconds wait) noexcept {
  return static_cast<int>(std::clamp<std::int64_t>(wait.count(), 0, 3'600'000));
}

}  // namespace fcap::kafka
