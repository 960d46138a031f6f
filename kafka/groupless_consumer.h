#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include <fcap/status.h>

#include "kafka/conf.h"
#include "kafka/kafka_client.h"
#include "kafka/message.h"
#include "kafka/partition_lists.h"

namespace fcap::kafka {

/// A consumer that joins no group: it is assigned what it reads, commits nothing, and causes no
/// rebalance. It logs nothing itself: the consumer of the same topic reports what there is to
/// report.
///
/// Thread safety: one thread at a time.
class GrouplessConsumer {
 public:
  struct Options {
    ConnectionOptions connection;
    std::string topic;
    std::string group_id;      ///< not joined; an account may have rights for this group only
    Properties defaults = {};  ///< of librdkafka; the connection's properties override them
  };
  /// Fails if librdkafka refuses a property. Does not wait for a broker.
  static Result<std::unique_ptr<GrouplessConsumer>> create(Options options);

  /// Reads these partitions from these offsets, and nothing else. What was fetched for an earlier
  /// assignment is dropped.
  Status assign(std::span<const PartitionOffset> partitions);
  void unassign();

  /// What a poll gives.
  struct Polled {
    enum class PolledKind : std::uint8_t {
      kNothing,
      kMessage,
      kEnd,         ///< the partition has no more messages; its log ends at `offset`
      kOutOfRange,  ///< the partition has no such offset as it was assigned
      kError,
    };
    PolledKind is = PolledKind::kNothing;
    std::int32_t partition = kNoPartition;
    std::int64_t offset = 0;
    MessagePtr message = {};  ///< for kMessage; must not outlive the consumer
    Status error = {};        ///< for kOutOfRange and kError
  };
  [[nodiscard]] Polled poll(std::chrono::milliseconds wait);

  /// The broker that leads each of these partitions. A partition's own error: it has none, or the
  /// topic cannot be read. The whole question fails if no broker answers.
  using Leaders = std::map<std::int32_t, Result<std::int32_t>>;
  [[nodiscard]] Result<Leaders> leaders(std::span<const std::int32_t> partitions,
                                        std::chrono::milliseconds timeout);
  /// kDeadlineExceeded: a broker that leads one of these partitions does not answer. Then nothing
  /// is known of the partitions of the others either.
  using Ends = std::map<std::int32_t, Result<Watermarks>>;
  [[nodiscard]] Result<Ends> watermarks(std::span<const std::int32_t> partitions,
                                        std::chrono::milliseconds timeout);
  [[nodiscard]] Result<Watermarks> watermarks(std::int32_t partition,
                                              std::chrono::milliseconds timeout);
  /// Empty: unknown.
  [[nodiscard]] std::string cluster_id(std::chrono::milliseconds timeout);

 private:
  Status look_up(rd_kafka_topic_partition_list_t& list, std::int64_t which,
                 std::chrono::steady_clock::time_point until);

  GrouplessConsumer(std::string topic, KafkaClient client)
      : topic_(std::move(topic)), client_(std::move(client)) {}

  const std::string topic_;
  const KafkaClient client_;
};

}  // namespace fcap::kafka
