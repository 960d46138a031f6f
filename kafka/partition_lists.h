#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/status.h>

#include "kafka/handles.h"

namespace fcap::kafka {

/// A place in a partition of the consumer's topic.
struct PartitionOffset {
  static constexpr std::int64_t kNone = RD_KAFKA_OFFSET_INVALID;
  static constexpr std::int64_t kBeginning = RD_KAFKA_OFFSET_BEGINNING;
  std::int32_t partition = 0;
  std::int64_t offset = kNone;
};

using PartitionList = Ptr<rd_kafka_topic_partition_list_t>;

/// librdkafka's form of places in one topic.
[[nodiscard]] PartitionList make_partition_list(const std::string& topic,
                                                std::span<const PartitionOffset> partitions);
[[nodiscard]] std::vector<PartitionOffset> offsets_of(const rd_kafka_topic_partition_list_t& list);
/// What Kafka said of the first partition that it answered with an error.
[[nodiscard]] rd_kafka_resp_err_t first_error(const rd_kafka_topic_partition_list_t& list) noexcept;

/// Ok, or an error that names what was being done.
[[nodiscard]] Status status_of(rd_kafka_resp_err_t code, std::string_view doing);
/// As librdkafka takes durations; at most an hour.
[[nodiscard]] int to_int_ms(std::chrono::milliseconds wait) noexcept;

}  // namespace fcap::kafka
