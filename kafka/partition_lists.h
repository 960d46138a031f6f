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

/// In place of a partition's number, for what concerns no single one.
inline constexpr std::int32_t kNoPartition = RD_KAFKA_PARTITION_UA;

/// A place in a partition of the topic that is read.
struct PartitionOffset {
  static constexpr std::int64_t kNone = RD_KAFKA_OFFSET_INVALID;
  std::int32_t partition = 0;
  std::int64_t offset = kNone;
};

/// The first existing offset and the one after the last.
struct Watermarks {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

/// How ListOffsets names the two ends of a log, in place of a time.
inline constexpr std::int64_t kLogEnd = -1;
inline constexpr std::int64_t kLogBeginning = -2;

using PartitionList = Ptr<rd_kafka_topic_partition_list_t>;

/// librdkafka's form of places.
[[nodiscard]] PartitionList make_partition_list(const std::string& topic,
                                                std::span<const PartitionOffset> partitions);
/// Leaves out partitions of other topics.
[[nodiscard]] std::vector<PartitionOffset> offsets_of(std::string_view topic,
                                                      const rd_kafka_topic_partition_list_t& list);
/// What Kafka said of the first partition that it answered with an error.
[[nodiscard]] rd_kafka_resp_err_t first_error(const rd_kafka_topic_partition_list_t& list) noexcept;

/// Ok, or an error that names what was being done.
[[nodiscard]] Status status_of(rd_kafka_resp_err_t code, std::string_view doing);
/// As librdkafka takes durations; at most an hour.
[[nodiscard]] int to_int_ms(std::chrono::milliseconds wait) noexcept;

}  // namespace fcap::kafka
