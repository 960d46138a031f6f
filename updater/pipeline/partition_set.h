#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcap/log.h>
#include <fcap/store.h>
#include <fcap/time.h>

#include "updater/metrics/metrics.h"
#include "updater/pipeline/batch.h"
#include "updater/pipeline/expired_book.h"
#include "updater/pipeline/mark_options.h"
#include "updater/pipeline/message_view.h"
#include "updater/pipeline/partition.h"
#include "updater/pipeline/partition_questions.h"
#include "updater/pipeline/partition_troubles.h"
#include "updater/pipeline/recovery.h"
#include "updater/pipeline/shard_port.h"
#include "updater/watch/stall_book.h"

namespace fcap::updater {

/// The assigned partitions: where reading is, and up to where everything is done. What may be read,
/// and what is read again, its Recovery decides: for each partition, everything below what is done
/// and in no gap is in this very data set.
///
/// Thread safety: one thread.
class PartitionSet {
 public:
  using Clock = Partition::Clock;
  /// Grows with each connection to the store made or lost.
  using Epoch = std::function<std::uint64_t()>;

  /// `shards`: which hold the marks (ShardRecovery); null: the store holds them (MarkRecovery).
  PartitionSet(Store& store, Epoch epoch, OffsetSource& source, const MarkOptions& options,
               Metrics& metrics, const LogCallback& log,
               std::shared_ptr<ShardPort> shards = nullptr);
  /// Waits for pending operations on marks (at most until their deadline).
  ~PartitionSet();
  PartitionSet(const PartitionSet&) = delete;
  PartitionSet& operator=(const PartitionSet&) = delete;

  [[nodiscard]] Recovery& recovery() noexcept { return *recovery_; }
  [[nodiscard]] const Recovery& recovery() const noexcept { return *recovery_; }

  /// Sets what checks each partition's log. Null, the default: logs are not checked. Null later on:
  /// they cannot be checked any more, and no mark is believed that this process has not written.
  void set_log_looks(LogLooks* looks) noexcept { questions_.set_log_looks(looks); }
  /// Something has happened to Kafka's brokers: the logs may be other ones now.
  void suspect_logs();
  /// Some partition no longer had the offset that was to be read next: it is found out for a
  /// minute which one, and whether messages have expired unread.
  void offsets_were_reset(Clock::time_point now);
  /// Nothing that was fetched is still to be taken in.
  void caught_up(Clock::time_point now);

  /// Takes partitions over and says where each begins. Reads their marks, queries Kafka, and waits
  /// for both up to the marks' deadline; a partition that cannot be judged by then gets kNone, and
  /// tick() continues. No partition is read before tick() has confirmed its mark.
  void assign(std::vector<PartitionOffset>& partitions);
  /// Gives partitions up; their metrics go with them.
  void revoke(std::span<const PartitionOffset> partitions);

  /// Does what is due: reads and writes marks, notices lost connections, decides what is read
  /// again.
  void tick(Clock::time_point now, Instant wall_now);

  /// Some mark is being compared or confirmed: nothing should be read now. A partition whose check
  /// has waited for Kafka for longer than the deadline (it may have no leader) is left behind:
  /// while others can be read, only itself waits, and what is delivered of it is dropped.
  [[nodiscard]] bool checking() const;
  /// Fills in the partitions that the consumer must be moved to before it is polled again.
  void to_place(std::vector<PartitionOffset>& out) const;
  /// The consumer was moved to where to_place() said.
  void placed(std::int32_t partition);
  /// The consumer is no longer where it was (resumed, or polled across a rebalance).
  void seek_all_again();

  /// A message of a partition was taken in; its views live until the next seal(). False: it must
  /// be dropped (not being read).
  bool take(std::int32_t partition, const Delivered& message);
  bool take(std::int32_t partition, std::int64_t offset) {
    return take(partition, Delivered{.offset = offset});
  }
  /// The consumer has found no message between the one delivered last and `end`, so everything
  /// before `end` is done when the messages taken are. Not before everything taken was sealed.
  void reached_end(std::int32_t partition, std::int64_t end);
  /// A dead letter of this message is being sent: until it has arrived, the partition's offsets do
  /// not move beyond it. Returns the generation to close it with.
  std::uint64_t open_letter(std::int32_t partition, std::int64_t offset);
  void close_letter(std::int32_t partition, std::uint64_t generation, std::int64_t offset);
  /// Whether the partition is assigned, and still in this generation.
  [[nodiscard]] bool current(std::int32_t partition, std::uint64_t generation) const;
  /// The generation that dead letters of a partition's gap carry.
  [[nodiscard]] std::uint64_t generation(std::int32_t partition) const;
  /// A held partition is not read; when it is released, the consumer must be moved.
  void hold(std::int32_t partition, bool held);
  [[nodiscard]] bool held(std::int32_t partition) const;
  /// The offset of the message that should come next; nullopt: no message should come now.
  [[nodiscard]] std::optional<std::int64_t> awaited(std::int32_t partition) const;
  /// What a partition waits for before it can be read; nullopt: nothing, or it is not assigned.
  [[nodiscard]] std::optional<StallBook::StallCause> waits_for(std::int32_t partition) const;

  /// The messages taken since the last call, as ranges of a batch.
  void seal(std::vector<Batch::BatchOffsets>& ranges);
  /// A batch has been written: its ranges are complete, but for what the Recovery gives up.
  void complete_batch(const Batch& batch);

  /// Offsets to commit that differ from those collected before.
  void collect_commits(std::vector<PartitionOffset>& out);
  /// The offsets collected before may not have been committed.
  void forget_commits();

  /// Some mark could not be read or written and is being retried.
  [[nodiscard]] bool failing() const noexcept;
  /// The last failure while failing(), with the server's words.
  [[nodiscard]] const std::string& trouble() const noexcept { return recovery_->trouble(); }
  /// Marks are written at once, not by their interval, until the next tick.
  void hurry() noexcept { hurry_ = true; }

  /// The first message of a piece was read: the partition's log is identified by it if by nothing
  /// else.
  void piece_begun(const GapPiece& piece, const Delivered& first);
  /// What was found to be missing for good since the last call.
  [[nodiscard]] std::vector<ExpiredEvents> take_expired() { return expired_.take(); }
  /// Whether it is known of each partition what is missing.
  [[nodiscard]] bool gaps_known() const;
  /// Whether marks, and so pieces, are about users of some slots only.
  [[nodiscard]] bool by_slot() const noexcept { return by_slot_; }

  [[nodiscard]] std::size_t size() const noexcept { return partitions_.size(); }
  void list(std::vector<PartitionOffset>& out) const;
  /// Everything below it is done; nullopt: unknown or not assigned.
  [[nodiscard]] std::optional<std::int64_t> low_water(std::int32_t partition) const;

 private:
  Partition* find(std::int32_t id);
  [[nodiscard]] const Partition* find(std::int32_t id) const;
  void begin_below(Partition& p, std::int64_t offset);
  void show_assigned();

  Partitions partitions_;
  Partitions::iterator last_found_ = partitions_.end();
  std::uint64_t generations_ = 0;
  bool by_slot_;
  bool hurry_ = false;
  Metrics* metrics_;
  LogCallback log_;
  PartitionTroubles troubles_;
  ExpiredBook expired_;
  PartitionQuestions questions_;
  std::unique_ptr<Recovery> recovery_;
};

}  // namespace fcap::updater
