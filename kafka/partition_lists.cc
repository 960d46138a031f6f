#include "kafka/partition_lists.h"

#include <algorithm>

#include <fmt/format.h>

namespace fcap::kafka {

PartitionList make_partition_list(const std::string& topic,
                                  std::span<const PartitionOffset> partitions) {
  PartitionList list(rd_kafka_topic_partition_list_new(static_cast<int>(partitions.size())));
  for (const PartitionOffset& at : partitions) {
    rd_kafka_topic_partition_list_add(list.get(), topic.c_str(), at.partition)->offset = at.offset;
  }
  return list;
}

std::vector<PartitionOffset> offsets_of(std::string_view topic,
                                        const rd_kafka_topic_partition_list_t& list) {
  std::vector<PartitionOffset> offsets;
  offsets.reserve(static_cast<std::size_t>(list.cnt));
  for (int i = 0; i < list.cnt; ++i) {
    const rd_kafka_topic_partition_t& at = list.elems[i];
    if (topic == at.topic) offsets.push_back({at.partition, at.offset});
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
