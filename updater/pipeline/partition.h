#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fcap/time.h>

#include "updater/marks/log_watch.h"
#include "updater/pipeline/batch.h"
#include "updater/pipeline/message_view.h"
#include "updater/pipeline/offset_tracker.h"
#include "updater/watch/log_bounds.h"

namespace fcap::updater {

/// A partition is read only in kReading. It leaves that phase when its mark must be compared
/// (kChecking: at assignment, after a conflict, after a write that failed, after a reconnection);
/// then Kafka may have to say where to begin (kAsking), while everything else goes on; then a mark
/// must be acknowledged on the present connection (kConfirming), because without marks nobody would
/// notice that Redis has lost what is read; then the consumer must be moved (kPlacing). In a
/// cluster it begins in kAsking, the shards' marks are compared and confirmed in kConfirming, and
/// it is in kChecking only until Kafka is asked again after an error.
enum class PartitionPhase : std::uint8_t { kChecking, kAsking, kConfirming, kPlacing, kReading };

/// An assigned partition: where its reading is, up to where everything is done, how its log is
/// known again, and what it waits for. When it may be read is its Recovery's to say.
///
/// Thread safety: one thread.
class Partition {
 public:
  using Clock = std::chrono::steady_clock;

  /// Reading should have continued at one offset and continued at a later one.
  struct Jump {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::optional<Instant> time = {};  ///< of the message there
    Clock::time_point due{};           ///< not to be judged before
    bool asked = false;                ///< Kafka, about it
  };

  /// What its check waits for, and what that has found so far. Written by those who make it:
  /// PartitionQuestions, PartitionTroubles and Recovery.
  struct PartitionCheck {
    /// Whether Kafka was asked. This happens at the end of a turn, so that all partitions are asked
    /// together.
    enum class OffsetQuery : std::uint8_t { kNo, kSoon, kYes };
    OffsetQuery query = OffsetQuery::kNo;
    std::optional<LogBounds> bounds = {};  ///< Kafka's answer
    /// Since when it waits for an answer of Kafka, over all attempts.
    std::optional<Clock::time_point> asking_since = {};
    bool left_behind = false;      ///< it has taken too long: the others are read without it
    bool looks_at_mark = false;    ///< the answer is whether the mark found is about this log
    std::uint32_t failures = 0;    ///< in a row, those of writing marks included
    Clock::time_point again_at{};  ///< after a failure
    std::optional<std::string> other_log = {};  ///< positioned: why the log is not the one read
  };

  /// `generations`: the last generation given to a partition of this updater; it must outlive this.
  Partition(std::int32_t id, std::uint64_t& generations)
      : id_(id), generations_(&generations), generation_(++generations) {}
  Partition(const Partition&) = delete;
  Partition& operator=(const Partition&) = delete;

  [[nodiscard]] std::int32_t id() const noexcept { return id_; }
  /// Another one: what was under way is void.
  [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
  [[nodiscard]] PartitionPhase phase() const noexcept { return phase_; }
  void wait_in(PartitionPhase phase) noexcept { phase_ = phase; }
  /// It is read as soon as the consumer is where it must be.
  void let_read() noexcept {
    phase_ = must_move_ ? PartitionPhase::kPlacing : PartitionPhase::kReading;
  }
  [[nodiscard]] bool is_read() const noexcept {
    return phase_ == PartitionPhase::kReading && !held_;
  }

  /// Reading begins, or begins again, at `offset`; what was under way is void.
  void begin(std::int64_t offset);
  /// Whether it is known where reading is.
  [[nodiscard]] bool positioned() const noexcept { return positioned_; }
  /// Where reading has begun the last time.
  [[nodiscard]] std::int64_t began_at() const noexcept { return began_at_; }
  /// Where the consumer must be.
  [[nodiscard]] std::int64_t place_at() const noexcept { return place_at_; }
  /// The consumer is there, or will be when it begins.
  void moved() noexcept { must_move_ = false; }
  /// The consumer is no longer where it was.
  void move_again();
  /// A held partition is not read; when it is released, the consumer must be moved.
  void hold(bool held);
  [[nodiscard]] bool held() const noexcept { return held_; }
  /// The offset of the message that should come next; nullopt: no message should come now.
  [[nodiscard]] std::optional<std::int64_t> awaited() const;

  /// Behind the last range that was closed.
  [[nodiscard]] std::optional<std::int64_t> next_offset() const noexcept {
    return tracker_.next_offset();
  }
  /// The lowest offset that the next message may have, behind what was taken since as well.
  [[nodiscard]] std::int64_t lowest_next(std::int64_t if_unknown) const;
  /// A message was delivered, and is taken in; its views live until the next seal().
  void take(const Delivered& message);
  /// The consumer has found no message between the one delivered last and `end`.
  void reached_end(std::int64_t end);
  [[nodiscard]] bool has_taken() const noexcept { return open_; }
  /// What was taken since the last call becomes a range of a batch. `stamp`: Recovery::stamp().
  void close_range(std::uint64_t stamp);
  /// Adds the ranges closed since the last call.
  void take_ranges(std::vector<Batch::BatchOffsets>& out);
  void complete(const Batch::BatchOffsets& range);

  /// Offsets whose dead letters have not arrived hold done_below() back.
  void open_letter(std::int64_t offset);
  void close_letter(std::int64_t offset);
  /// Everything below it is done, dead letters included; nullopt: not known.
  [[nodiscard]] std::optional<std::int64_t> done_below() const;

  /// What the group has committed.
  void set_committed(std::optional<std::int64_t> offset) noexcept { commit_sent_ = offset; }
  /// The offset to commit, if it is not the one given last.
  [[nodiscard]] std::optional<std::int64_t> offset_to_commit();

  /// Messages may have expired unread: until then, and until it has caught up, each jump counts,
  /// not only that of the first message since the consumer was moved.
  void watch_jumps(Clock::time_point until) noexcept { jumps_until_ = until; }
  /// Nothing that was fetched is still to be taken in.
  void caught_up(Clock::time_point now) noexcept {
    if (jumps_until_ && now >= *jumps_until_) jumps_until_.reset();
  }
  /// They were in another log.
  void forget_jumps() noexcept { jump_ = later_jump_ = std::nullopt; }
  /// Not known yet whether messages were missing there.
  [[nodiscard]] std::optional<Jump>& jump() noexcept { return jump_; }
  /// It is known now; there may be another one.
  [[nodiscard]] Jump take_jump();
  [[nodiscard]] LogWatch& log() noexcept { return log_; }
  [[nodiscard]] PartitionCheck& check() noexcept { return check_; }
  [[nodiscard]] const PartitionCheck& check() const noexcept { return check_; }

 private:
  void note_jump(Jump jump);

  std::int32_t id_;
  std::uint64_t* generations_;
  std::uint64_t generation_;
  PartitionPhase phase_ = PartitionPhase::kChecking;
  bool positioned_ = false;  // whether tracker_ says where reading is
  bool held_ = false;
  bool must_move_ = false;     // the consumer is not at place_at_
  bool first_message_ = true;  // none was taken since the partition was placed
  std::int64_t began_at_ = 0;
  std::int64_t place_at_ = 0;
  OffsetTracker tracker_;
  std::multiset<std::int64_t> letters_;
  std::optional<std::int64_t> commit_sent_;
  std::optional<Jump> jump_;
  std::optional<Jump> later_jump_;  // those since, as one
  std::optional<Clock::time_point> jumps_until_;
  LogWatch log_;
  PartitionCheck check_;
  // Taken since the last close_range().
  bool open_ = false;
  std::int64_t open_first_ = 0;
  std::int64_t open_end_ = 0;
  Delivered open_last_;
  std::vector<Batch::BatchOffsets> ranges_;  // closed
};

/// The assigned ones, by their numbers.
using Partitions = std::map<std::int32_t, Partition>;

}  // namespace fcap::updater
