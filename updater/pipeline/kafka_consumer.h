#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/redis_options.h>
#include <fcap/status.h>
#include <fcap/time.h>

#include "kafka/conf.h"
#include "kafka/handles.h"
#include "updater/metrics/metrics.h"

namespace fcap::updater {

struct ConsumerOptions {
  kafka::Connection connection;
  std::string topic = "impressions";
  std::string group_id = "fcap-updater";
  std::string group_instance_id;  ///< empty: dynamic membership
  std::string assignment_strategy = "range,roundrobin";
  /// Where to go on when the position asked for is gone: "earliest", "latest" or "error".
  std::string offset_reset = "earliest";
  /// What librdkafka may hold fetched ahead, over all partitions together.
  std::size_t prefetch_bytes_max = std::size_t{64} * 1024 * 1024;
  /// Whether ends_reached() is kept.
  bool report_ends = false;
};

/// A place in a partition of the consumer's topic.
struct PartitionOffset {
  static constexpr std::int64_t kNone = RD_KAFKA_OFFSET_INVALID;
  static constexpr std::int64_t kBeginning = RD_KAFKA_OFFSET_BEGINNING;
  std::int32_t partition = 0;
  std::int64_t offset = kNone;
};

/// Told of changes of the assignment, on the polling thread, from within poll() or close().
class AssignmentListener {
 public:
  /// The partitions come with no offsets; those set by the listener are where reading starts
  /// (kNone: at the committed offset, else by the reset rule).
  virtual void on_assigning(std::vector<PartitionOffset>& partitions) = 0;
  /// After they were assigned.
  virtual void on_assigned(std::span<const PartitionOffset> partitions) = 0;
  /// Before they are given up. `lost`: they are already another's; a commit would be refused.
  virtual void on_revoking(std::span<const PartitionOffset> partitions, bool lost) = 0;

 protected:
  ~AssignmentListener() = default;
};

/// The messages of one poll, kept until the next.
class MessageBatch {
 public:
  explicit MessageBatch(std::size_t messages_max) : slots_(messages_max), limit_(messages_max) {}
  ~MessageBatch() { clear(); }
  MessageBatch(const MessageBatch&) = delete;
  MessageBatch& operator=(const MessageBatch&) = delete;
  /// The next poll gives at most this many.
  void limit(std::size_t messages_max) noexcept { limit_ = std::min(messages_max, slots_.size()); }
  [[nodiscard]] std::span<rd_kafka_message_t* const> messages() const noexcept {
    return {slots_.data(), size_};
  }
  void clear() noexcept;

 private:
  friend class KafkaConsumer;
  std::vector<rd_kafka_message_t*> slots_;
  std::size_t limit_;
  std::size_t size_ = 0;
};

/// A member of a consumer group, over one topic. Nothing is committed but what commit_*() is told.
///
/// Thread safety: one thread calls it and receives all callbacks.
class KafkaConsumer {
 public:
  static Result<std::unique_ptr<KafkaConsumer>> create(const ConsumerOptions& options,
                                                       Metrics& metrics, LogCallback log);
  /// Leaves the group if close() was not called; without callbacks.
  ~KafkaConsumer();
  KafkaConsumer(const KafkaConsumer&) = delete;
  KafkaConsumer& operator=(const KafkaConsumer&) = delete;

  /// Joins the group. `listener` must outlive the consumer or its close().
  Status subscribe(AssignmentListener& listener);
  /// Reads partitions without a group, from the given offsets (replay).
  Status assign(std::span<const PartitionOffset> partitions);
  /// Revokes (with callbacks) and leaves the group.
  void close();

  /// Waits up to `first_wait` for a message, then up to `more_wait` for more, until `batch` is
  /// full. Serves callbacks. True: the messages count. False: the assignment changed while they
  /// were gathered, so some may belong to a passed assignment: drop them all and seek.
  bool poll(MessageBatch& batch, std::chrono::milliseconds first_wait,
            std::chrono::milliseconds more_wait);

  void commit_async(std::span<const PartitionOffset> offsets);
  /// Tries again for a few seconds while the group's coordinator is away (a broker that restarts);
  /// what it refuses is not tried again.
  Status commit_sync(std::span<const PartitionOffset> offsets);
  /// Whether a commit_async() has failed since the last call.
  [[nodiscard]] bool take_commit_failure() noexcept { return std::exchange(commit_failed_, false); }

  /// Why the consumer will never deliver anything again; none: it may. Only a new one helps.
  [[nodiscard]] const std::optional<std::string>& fatal() const noexcept { return fatal_; }
  /// What Kafka said of partitions that it has not delivered anything of since; kTopic: of all.
  static constexpr std::int32_t kTopic = -1;
  [[nodiscard]] const std::map<std::int32_t, std::string>& partition_errors() const noexcept {
    return partition_errors_;
  }

  void pause(std::span<const PartitionOffset> partitions);
  void resume(std::span<const PartitionOffset> partitions);
  /// Waits until the fetchers have moved: nothing from before is delivered afterwards. A partition
  /// whose seek failed stays where it is and is named in `failed`.
  void seek(std::span<const PartitionOffset> partitions, std::vector<std::int32_t>& failed);

  /// The group's committed offsets; kNone where there is none.
  Status committed(std::vector<PartitionOffset>& partitions, std::chrono::milliseconds timeout);
  /// The first offset of each partition whose message is not before `time`; kNone where there is
  /// none.
  Status offsets_at(Instant time, std::vector<PartitionOffset>& partitions,
                    std::chrono::milliseconds timeout);
  /// The first offset there is and the one after the last.
  struct Watermarks {
    std::int64_t low = 0;
    std::int64_t high = 0;
  };
  Result<Watermarks> watermarks(std::int32_t partition, std::chrono::milliseconds timeout);
  /// The end of a partition as last heard with a fetch; none when nothing was heard yet.
  [[nodiscard]] std::optional<std::int64_t> known_end(std::int32_t partition) const;
  /// With report_ends: the end at which each partition was last found to have no more messages.
  [[nodiscard]] const std::map<std::int32_t, std::int64_t>& ends_reached() const noexcept {
    return ends_reached_;
  }
  /// How many partitions the topic has.
  Result<std::int32_t> partition_count(std::chrono::milliseconds timeout);

  [[nodiscard]] const std::string& topic() const noexcept { return options_.topic; }
  [[nodiscard]] const std::string& group_id() const noexcept { return options_.group_id; }

 private:
  KafkaConsumer(ConsumerOptions options, Metrics& metrics, LogCallback log);
  [[nodiscard]] kafka::Ptr<rd_kafka_topic_partition_list_t> list_of(
      std::span<const PartitionOffset> partitions) const;
  void rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* list);
  void give_up(const rd_kafka_topic_partition_list_t* list);
  void take_over(rd_kafka_topic_partition_list_t* list);
  void report(LogLevel level, std::string_view text) const;
  void drop_error_messages(MessageBatch& batch);
  void note_error(const rd_kafka_message_t& message);
  void look_for_fatal_error();

  ConsumerOptions options_;
  Metrics* metrics_;
  LogCallback log_;
  AssignmentListener* listener_ = nullptr;
  std::uint64_t rebalances_ = 0;
  bool commit_failed_ = false;
  std::optional<std::string> fatal_;
  std::map<std::int32_t, std::string> partition_errors_;
  std::map<std::int32_t, std::int64_t> ends_reached_;
  kafka::Ptr<rd_kafka_t> handle_;
  kafka::Ptr<rd_kafka_queue_t> queue_;
};

}  // namespace fcap::updater
