#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/log.h>
#include <fcap/status.h>
#include <fcap/time.h>

#include "kafka/conf.h"
#include "kafka/connection_advice.h"
#include "kafka/handles.h"
#include "kafka/kafka_client.h"
#include "kafka/partition_lists.h"

namespace fcap::kafka {

struct ConsumerOptions {
  ConnectionOptions connection;
  std::string topic = "impressions";
  std::string group_id = "fcap-updater";
  std::string group_instance_id;  ///< empty: dynamic membership
  std::string assignment_strategy = "range,roundrobin";
  /// Where to go on when the position asked for is gone: "earliest", "latest" or "error".
  std::string offset_reset = "earliest";
  /// What librdkafka may hold fetched ahead, over all partitions together.
  std::size_t prefetch_bytes_max = std::size_t{64} * 1024 * 1024;
};

/// Told of changes of the assignment, on the polling thread, from within poll() or close().
class AssignmentListener {
 public:
  /// The partitions come with no offsets; those set by the listener are where reading begins. One
  /// left at kNone is not read before assign() names it.
  virtual void on_assigning(std::vector<PartitionOffset>& partitions) = 0;
  /// Before they are given up. `lost`: they are already another's; a commit would be refused.
  virtual void on_revoking(std::span<const PartitionOffset> partitions, bool lost) = 0;

 protected:
  ~AssignmentListener() = default;
};

/// What a consumer does that somebody may count.
enum class ConsumerEvent : std::uint8_t { kCommitted, kCommitFailed, kRebalanced };

/// The messages of one poll, kept until the next.
class MessageBatch {
 public:
  explicit MessageBatch(std::size_t messages_max) : slots_(messages_max), limit_(messages_max) {}
  ~MessageBatch() { clear(); }
  MessageBatch(const MessageBatch&) = delete;
  MessageBatch& operator=(const MessageBatch&) = delete;
  /// The next poll gives at most this many.
  void limit(std::size_t messages_max) noexcept { limit_ = std::min(messages_max, slots_.size()); }
  /// Whether the last poll() returned as many messages as the limit allows.
  [[nodiscard]] bool full() const noexcept { return filled_; }
  [[nodiscard]] std::span<rd_kafka_message_t* const> messages() const noexcept {
    return {slots_.data(), size_};
  }
  void clear() noexcept;

 private:
  friend class Consumer;
  std::vector<rd_kafka_message_t*> slots_;
  std::size_t limit_;
  std::size_t size_ = 0;
  bool filled_ = false;
};

/// A member of a consumer group. Nothing is committed but what commit_*() is told.
///
/// Thread safety: one thread calls it and receives all callbacks.
class Consumer {
 public:
  /// Called on the polling thread; may be empty.
  using CountEvent = std::function<void(ConsumerEvent)>;

  static Result<std::unique_ptr<Consumer>> create(const ConsumerOptions& options, CountEvent count,
                                                  LogCallback log);
  /// Leaves the group, without callbacks, if close() was not called: for five seconds at most, and
  /// two more until the client has ended (see KafkaClient).
  ~Consumer();
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;

  /// Joins the group. `listener` must outlive the consumer or its close().
  Status subscribe(AssignmentListener& listener);
  /// Reads partitions from the given offsets, whatever was read of them before: without a group
  /// (replay), or partitions that the group has assigned. Others are not read any more, unless the
  /// group rebalances cooperatively.
  Status assign(std::span<const PartitionOffset> partitions);
  /// Whether a partition has been given an offset since the group assigned it.
  [[nodiscard]] bool begun(std::int32_t partition) const { return begun_.contains(partition); }
  /// Revokes (with callbacks), leaves the group and ends the client; waits for `patience` at most,
  /// and for what the listener does. Then KafkaClient::is_left_behind() may say that librdkafka has
  /// not ended (a dead broker, a topic that was deleted).
  void close(std::chrono::milliseconds patience);

  /// Waits up to `first_wait` for a message, then up to `more_wait` for more, until `batch` is
  /// full. Serves callbacks. True: the messages count. False: the assignment changed while they
  /// were gathered, so some may belong to a former assignment: drop them all and seek.
  bool poll(MessageBatch& batch, std::chrono::milliseconds first_wait,
            std::chrono::milliseconds more_wait);

  void commit_async(std::span<const PartitionOffset> offsets);
  /// Tries again for a few seconds while the group's coordinator is away (a broker that restarts);
  /// what it refuses is not tried again. Gives up after five seconds.
  Status commit_sync(std::span<const PartitionOffset> offsets);
  /// Since when Kafka has answered no commit_async() although some were not answered yet; nullopt:
  /// all were.
  [[nodiscard]] const std::optional<std::chrono::steady_clock::time_point>& commits_wait_since()
      const noexcept {
    return commits_wait_since_;
  }
  /// Whether a commit_async() has failed since the last call.
  [[nodiscard]] bool take_commit_failure() noexcept { return std::exchange(commit_failed_, false); }

  /// Why the consumer will never deliver anything again; none: it may. Only a new one helps.
  [[nodiscard]] const std::optional<std::string>& fatal() const noexcept { return fatal_; }
  /// How often some partition no longer had the offset that was to be read next, and reading went
  /// on by ConsumerOptions::offset_reset. Known before any message behind that is delivered.
  [[nodiscard]] std::uint64_t offset_resets() const noexcept {
    return context_->offset_resets.load(std::memory_order_acquire);
  }
  /// What Kafka said of partitions that it has not delivered anything of since. The number kTopic
  /// means all partitions of the topic.
  static constexpr std::int32_t kTopic = kNoPartition;
  struct PartitionError {
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    std::string text;
    std::chrono::steady_clock::time_point since;
  };
  [[nodiscard]] const std::map<std::int32_t, PartitionError>& partition_errors() const noexcept {
    return partition_errors_;
  }
  /// Forgets that the topic or a partition of it did not exist, or had no leader, if a later look
  /// shows that it does and has one. A partition into which nothing is written delivers no message
  /// that would show it.
  void forget_passed_errors(std::chrono::steady_clock::time_point looked,
                            const std::set<std::int32_t>& without_leader);

  /// Records an error of a partition, or of kTopic, that librdkafka did not report. It counts until
  /// the partition delivers a message.
  void note_unreadable(std::int32_t partition, std::string text);

  /// The last trouble of Kafka's client with a broker, in its own words, if that was since `then`;
  /// otherwise empty.
  [[nodiscard]] std::string words_since(std::chrono::steady_clock::time_point then) const {
    return words_at_ >= then ? words_ : std::string();
  }
  /// Grows whenever Kafka's client has had trouble with a broker or a partition.
  [[nodiscard]] std::uint64_t troubles() const noexcept { return troubles_; }

  void pause(std::span<const PartitionOffset> partitions);
  void resume(std::span<const PartitionOffset> partitions);
  /// Waits until the fetchers have moved: nothing from before is delivered afterwards. Only
  /// partitions that have begun. One whose seek failed stays where it is and is named in `failed`.
  void seek(std::span<const PartitionOffset> partitions, std::vector<std::int32_t>& failed);

  /// The group's committed offsets; kNone where nothing was committed.
  Status committed(std::vector<PartitionOffset>& partitions, std::chrono::milliseconds timeout);
  /// The first offset of each partition whose message is not before `time`; kNone where all
  /// messages are older.
  Status offsets_at(Instant time, std::vector<PartitionOffset>& partitions,
                    std::chrono::milliseconds timeout);
  Result<Watermarks> watermarks(std::int32_t partition, std::chrono::milliseconds timeout);
  /// The ends at which partitions were found to have no more messages, by the last poll: there is
  /// no message between the one read last and such an end, though there may be offsets without
  /// one (compacted away, aborted, or the broker's marks of transactions).
  [[nodiscard]] const std::map<std::int32_t, std::int64_t>& ends_reached() const noexcept {
    return ends_reached_;
  }
  /// How many partitions the topic has.
  Result<std::int32_t> partition_count(std::chrono::milliseconds timeout);

 private:
  /// What librdkafka's threads may use for as long as the client lives.
  struct ConsumerContext {
    ConsumerContext(Consumer* owner, LogCallback to) : consumer(owner), log(std::move(to)) {}
    Consumer* consumer;  ///< only from within its own calls
    LogCallback log;
    RefusedCertificate refused_certificate;
    std::atomic<std::uint64_t> offset_resets{0};
  };

  Consumer(ConsumerOptions options, CountEvent count, LogCallback log);
  [[nodiscard]] PartitionList list_of(std::span<const PartitionOffset> partitions) const;
  bool leave(std::chrono::steady_clock::time_point until);
  rd_kafka_resp_err_t commit_once(const rd_kafka_topic_partition_list_t& list,
                                  std::chrono::steady_clock::time_point until);
  void rebalance(rd_kafka_resp_err_t what, rd_kafka_topic_partition_list_t* list);
  void give_up(const rd_kafka_topic_partition_list_t* list);
  [[nodiscard]] bool cooperative() const;
  void note_others(std::size_t partitions);
  void take_over(rd_kafka_topic_partition_list_t* list);
  void count(ConsumerEvent event) const;
  void report(LogLevel level, std::string_view text) const;
  void report_error(LogLevel level, std::int32_t partition, std::string_view text) const;
  void note_unreadable(std::int32_t partition, rd_kafka_resp_err_t code, std::string text);
  void drop_error_messages(MessageBatch& batch);
  void note_delivered(std::int32_t partition);
  void note_error(const rd_kafka_message_t& message);
  void note_client_error(int code, const char* reason);
  void note_commit(rd_kafka_resp_err_t code);
  void look_for_fatal_error();

  ConsumerOptions options_;
  CountEvent count_;
  LogCallback log_;
  AssignmentListener* listener_ = nullptr;
  std::uint64_t rebalances_ = 0;
  bool commit_failed_ = false;
  std::size_t commits_unanswered_ = 0;
  std::optional<std::chrono::steady_clock::time_point> commits_wait_since_;
  std::uint64_t troubles_ = 0;
  std::string words_;
  std::chrono::steady_clock::time_point words_at_{};
  std::set<std::int32_t> begun_;
  std::optional<std::string> fatal_;
  std::map<std::int32_t, PartitionError> partition_errors_;
  std::map<std::int32_t, std::int64_t> ends_reached_;
  std::shared_ptr<ConsumerContext> context_;
  KafkaClient client_;
  Ptr<rd_kafka_queue_t> queue_;
};

}  // namespace fcap::kafka
