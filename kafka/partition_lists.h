#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/status.h>

#include "kafka/handles.h"
#include "kafka/topic_partition.h"

namespace fcap::kafka {

/// The place of this topic; none: it is not in the list.
[[nodiscard]] std::optional<TopicIndex> index_of(const TopicNames& topics,
                                                 std::string_view name) noexcept;
/// The partition of a message; kNoPartition: the message names no topic, or one that is not in the
/// list.
[[nodiscard]] TopicPartition partition_of(const TopicNames& topics,
                                          const rd_kafka_message_t& message) noexcept;

/// A place in a partition.
struct PartitionOffset {
  static constexpr std::int64_t kNone = RD_KAFKA_OFFSET_INVALID;
  static constexpr std::int64_t kBeginning = RD_KAFKA_OFFSET_BEGINNING;  ///< for benches
  TopicPartition partition = {};
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
[[nodiscard]] PartitionList make_partition_list(const TopicNames& topics,
                                                std::span<const PartitionOffset> partitions);
/// Leaves out partitions of topics that are not in `topics`.
[[nodiscard]] std::vector<PartitionOffset> offsets_of(const TopicNames& topics,
                                                      const rd_kafka_topic_partition_list_t& list);
/// What Kafka said of the first partition that it answered with an error.
[[nodiscard]] rd_kafka_resp_err_t first_error(const rd_kafka_topic_partition_list_t& list) noexcept;

/// Ok, or an error that names what was being done.
[[nodiscard]] Status status_of(rd_kafka_resp_err_t code, std::string_view doing);
/// As librdkafka takes durations; at most an hour.
[[nodiscard]] int to_int_ms(std::chrono::milliseconds wait) noexcept;

}  // namespace fcap::kafka
