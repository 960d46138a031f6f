#pragma once

#include <algorithm>
#include <chrono>
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

#include <fcap/defaults.h>
#include <fcap/log.h>
#include <fcap/status.h>
#include <fcap/store.h>
#include <fcap/time.h>

#include "base/backoff.h"
#include "kafka/partition_lists.h"
#include "updater/marks/log_look.h"
#include "updater/marks/log_watch.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/batch.h"
#include "updater/pipeline/gap_times.h"
#include "updater/pipeline/mark.h"
#include "updater/pipeline/message_view.h"
#include "updater/pipeline/offset_tracker.h"
#include "updater/pipeline/rewind.h"
#include "updater/process/invariant.h"
#include "updater/watch/log_bounds.h"
#include "updater/watch/stall_book.h"

namespace fcap::updater {

using kafka::PartitionOffset;

struct MarkOptions {
  std::string key_prefix = kDefaultKeyPrefix;
  std::string group_id;
  std::string topic;
  /// A mark expires only a little later than the events it vouches for: if the clock of Redis' host
  /// jumps and all records expire, so do the marks. An older mark may expire: everything before it
  /// has expired, and without a mark reading starts at the start of the retention.
  std::chrono::milliseconds retention = kDefaultRetention;
  std::chrono::milliseconds deadline{1000};
  /// Between two marks of a partition that makes progress, and of one that does not.
  std::chrono::milliseconds interval{100};
  std::chrono::milliseconds idle_interval{1000};
  std::chrono::milliseconds backoff_min{20};
  std::chrono::milliseconds backoff_max{1000};
  std::uint64_t jitter_seed = 1;
  /// How often each partition's log is checked, and the least time between two checks when
  /// something has happened to Kafka's brokers.
  std::chrono::milliseconds log_interval{60'000};
  std::chrono::milliseconds log_interval_min{1000};
  /// A stretch of at least so many offsets that may be missing is not read in line, because every
  /// later message would wait for it: it becomes a gap of the mark, reading continues, and the gap
  /// filler reads it meanwhile. nullopt: everything is read in line, the gaps of a mark as well.
  std::optional<std::int64_t> gap_min;
  /// Gaps are filled in pieces of this many offsets, the newest first.
  std::int64_t piece_offsets_max = 200'000;
};

/// A part of a gap, to be read and written. Done only if all of it was acknowledged on the
/// connections of `epoch`.
struct GapPiece {
  std::int32_t partition = 0;
  std::uint64_t gaps_generation = 0;  ///< another one: the gaps were determined again
  std::uint64_t epoch = 0;
  std::int64_t from = 0;
  std::int64_t to = 0;
  // In a cluster: for the users of which slots, ShardMarks::stamp() when it was begun, and where it
  // has failed.
  SlotSet slots = {};
  std::uint64_t stamp = 0;
  SlotSet failed = {};
};

/// The assigned partitions: where reading is, up to where everything is done, which mark Redis
/// holds, and when reading must go back.
///
/// A partition is read only in phase kReading. It leaves that phase when its mark must be compared
/// (kChecking: at assignment, after a conflict, after a write that failed, after a reconnection);
/// then Kafka may have to say where to begin (kAsking), while everything else goes on; then a mark
/// must be acknowledged on the present connection (kConfirming), because without marks
/// nobody would notice that Redis has lost what is read; then the consumer must be moved
/// (kPlacing).
///
/// Events that may be missing are read again in line if they are few; otherwise they become a gap
/// of the mark, which is handed out in pieces. For each partition, everything below done_below()
/// that is in no gap is in this very data set.
///
/// Thread safety: one thread.
class PartitionSet {
 public:
  using Clock = std::chrono::steady_clock;
  /// Grows with each connection to the store made or lost.
  using Epoch = std::function<std::uint64_t()>;

  PartitionSet(Store& store, Epoch epoch, OffsetSource& source, MarkOptions options,
               Metrics& metrics, LogCallback log);
  /// Waits for pending operations on marks (at most until their deadline).
  virtual ~PartitionSet();
  PartitionSet(const PartitionSet&) = delete;
  PartitionSet& operator=(const PartitionSet&) = delete;

  /// Sets what checks each partition's log. Null, the default: logs are not checked. Null later on:
  /// they cannot be checked any more, and no mark is believed that this process has not written.
  void set_log_looks(LogLooks* looks) noexcept {
    looks_ = looks;
    logs_matter_ = logs_matter_ || looks != nullptr;
  }
  /// Something has happened to Kafka's brokers: the logs may be other ones now.
  void suspect_logs();

  /// Takes partitions over and says where each begins. Reads their marks, queries Kafka, and waits
  /// for both up to the marks' deadline; a partition that cannot be judged by then gets kNone, and
  /// tick() continues. No partition is read before tick() has confirmed its mark.
  virtual void assign(std::vector<PartitionOffset>& partitions);
  /// Gives partitions up; their metrics go with them.
  virtual void revoke(std::span<const PartitionOffset> partitions);

  /// Does what is due: reads and writes marks, notices lost connections, decides rewinds.
  virtual void tick(Clock::time_point now, Instant wall_now);

  /// Some mark is being compared or confirmed: nothing should be read now. A partition whose check
  /// has waited for Kafka for longer than the deadline (it may have no leader) is left behind:
  /// while others can be read, only itself waits, and what is delivered of it is dropped.
  [[nodiscard]] virtual bool checking() const noexcept;
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
  /// A held partition is not read; when it is released, the consumer must be moved.
  void hold(std::int32_t partition, bool held);
  [[nodiscard]] bool held(std::int32_t partition) const;
  /// The offset of the message that should come next; nullopt: no message should come now.
  [[nodiscard]] std::optional<std::int64_t> awaited(std::int32_t partition) const;
  /// What a partition waits for before it can be read; nullopt: nothing, or it is not assigned.
  [[nodiscard]] std::optional<StallBook::StallCause> waits_for(std::int32_t partition) const;

  /// The messages taken since the last call, as ranges of a batch.
  void seal(std::vector<Batch::BatchOffsets>& ranges);
  void complete(const Batch::BatchOffsets& range);
  /// A batch has been written: its ranges are complete.
  virtual void complete_batch(const Batch& batch);

  /// Offsets to commit that differ from those collected before.
  void collect_commits(std::vector<PartitionOffset>& out);
  /// The offsets collected before may not have been committed.
  void forget_commits();

  /// Some mark could not be read or written and is being retried.
  [[nodiscard]] virtual bool failing() const noexcept;
  /// The last failure while failing(), with the server's words.
  [[nodiscard]] virtual const std::string& trouble() const noexcept { return trouble_; }
  /// Whether every mark that can be written has been.
  [[nodiscard]] virtual bool marks_settled() const noexcept;
  /// Writes marks at once, not by their interval, until the next tick.
  void hurry() noexcept { hurry_ = true; }

  /// Redis may have dropped records that still count without a trace in any mark: everything since
  /// the start of the retention is read again.
  virtual void doubt_all();

  /// The newest piece of each partition that has a gap and is being read.
  virtual void list_pieces(std::vector<GapPiece>& out) const;
  /// Whether it is worth continuing with a piece.
  [[nodiscard]] virtual bool filling(const GapPiece& piece) const;
  /// Its first message was read: the partition's log is identified by it if by nothing else.
  void piece_begun(const GapPiece& piece, const Delivered& first);
  /// Some of its events have been written.
  virtual void count_piece(GapPiece& /*piece*/, const Batch& /*batch*/) {}
  /// Everything in it has been acknowledged, dead letters included. False: it does not count,
  /// because Redis may have lost some of it, and will be handed out again if it is still missing.
  virtual bool piece_done(const GapPiece& piece);
  /// The log begins at `log_start`, within the piece or behind it: what gaps hold below it is
  /// missing for good. `newest`: as in ExpiredEvents. Events before `oldest` do not count any more.
  virtual void expire(const GapPiece& piece, std::int64_t log_start, std::optional<Instant> newest,
                      Instant oldest);
  /// What was found to be missing for good since the last call.
  [[nodiscard]] std::vector<ExpiredEvents> take_expired() { return std::exchange(expired_, {}); }
  /// The generation that dead letters of a partition's gap carry.
  [[nodiscard]] std::uint64_t generation(std::int32_t partition) const;
  /// For each partition whose gaps are known, the end of its newest gap, or that it has none. For
  /// each that has lost something while Kafka cannot say how much must be read again, the offset
  /// below which events may be missing. What is stated of a partition that is left out stays as it
  /// is.
  virtual void list_gap_ends(std::vector<GapEnd>& out) const;
  /// Fills in MarkNews::compared.
  virtual void list_compared(std::map<std::int32_t, Clock::time_point>& out) const;
  /// MarkNews::gone since the last call.
  [[nodiscard]] SlotSet take_marks_gone() { return std::exchange(marks_gone_, {}); }
  /// Whether it is known of each partition what is missing.
  [[nodiscard]] virtual bool gaps_known() const noexcept;
  /// How many offsets are in gaps, as far as is known.
  [[nodiscard]] virtual std::int64_t offsets_missing() const noexcept;
  /// Whether marks, and so pieces, are about users of some slots only.
  [[nodiscard]] virtual bool by_slot() const noexcept { return false; }
  /// Whether writes of this slot that fail are given up.
  [[nodiscard]] virtual bool gives_up(std::uint16_t /*slot*/) const { return false; }

  [[nodiscard]] std::size_t size() const noexcept { return partitions_.size(); }
  void list(std::vector<PartitionOffset>& out) const;
  /// Everything below it is done; nullopt: unknown or not assigned.
  [[nodiscard]] std::optional<std::int64_t> low_water(std::int32_t partition) const;

 protected:
  enum class PartitionPhase : std::uint8_t { kChecking, kAsking, kConfirming, kPlacing, kReading };
  /// Whether Kafka was queried where to begin. This happens at the end of tick(), so that all
  /// partitions are queried together.
  enum class OffsetQuery : std::uint8_t { kNo, kSoon, kYes };
  /// Reading should have continued at one offset and continued at a later one.
  struct Jump {
    std::int64_t from = 0;
    std::int64_t to = 0;
    std::optional<Instant> time = {};  // of the message there
    Clock::time_point due{};           // not to be judged before
  };
  /// A partition's own mark. In a cluster a partition has none, since its marks are the shards'
  /// (ShardTurns). A caller that asks for it all the same ends the process.
  class OwnMark {
   public:
    explicit OwnMark(std::unique_ptr<Mark> mark) noexcept : mark_(std::move(mark)) {}
    [[nodiscard]] bool exists() const noexcept { return mark_ != nullptr; }
    Mark* operator->() const noexcept {
      must_hold(exists(), "a partition whose shards have the marks is not asked for its own");
      return mark_.get();
    }
    [[nodiscard]] std::unique_ptr<Mark> take() noexcept { return std::move(mark_); }

   private:
    std::unique_ptr<Mark> mark_;
  };
  struct Partition {
    explicit Partition(std::unique_ptr<Mark> own) : mark(std::move(own)) {}
    OwnMark mark;
    PartitionPhase phase = PartitionPhase::kChecking;
    bool positioned = false;  // whether `tracker` says where reading is
    OffsetQuery asked = OffsetQuery::kNo;
    bool left_behind = false;  // its check has taken too long: the others are read without it
    bool held = false;         // by hold()
    // Since when its check waits for an answer of Kafka, over all attempts.
    std::optional<Clock::time_point> asking_since;
    std::uint64_t generation = 0;
    OffsetTracker tracker;
    std::multiset<std::int64_t> letters;  // offsets whose dead letters have not arrived
    /// Everything below it is done, dead letters included.
    [[nodiscard]] std::optional<std::int64_t> done_below() const {
      const auto done = tracker.low_water();
      return !done || letters.empty() ? done : std::min(*done, *letters.begin());
    }
    // Offsets that may be missing, below sure_from. Above it are only those that a mark called
    // missing; they are read in line.
    Gaps gaps;
    std::int64_t sure_from = 0;         // offsets done from here on are in this data set
    std::uint64_t gaps_generation = 0;  // GapPiece::gaps_generation
    std::int64_t place_at = 0;          // where the consumer must be
    bool some_expired = false;          // of the gaps, since some were found
    bool must_move = false;             // the consumer is not at place_at
    bool reconnected = false;           // kChecking: since the mark was confirmed
    // The mark claims what may have been lost, or is about another log. Until one is written that
    // claims less, this is the only sign of it.
    bool mark_may_fall = false;
    bool first_message = true;          // none was taken since the partition was placed
    std::optional<Jump> jump;           // not known yet whether messages were missing
    std::uint64_t epoch = 0;            // of the connections when the mark was compared
    std::uint64_t operation_epoch = 0;  // when the operation under way was started
    Clock::time_point mark_due{};
    Clock::time_point mark_begun{};  // the last write of the mark
    Clock::time_point compared{};    // as MarkNews::compared
    std::uint32_t failures = 0;
    bool no_mark_said = false;  // that something else stands at the mark's key
    std::optional<std::int64_t> commit_sent;
    LogWatch log;
    // What a check has found: Kafka's answer, and whether the mark found is about this log.
    std::optional<LogBounds> bounds;
    std::optional<LogWatch::StartedLook> mark_look;
    std::optional<LogVerdict> mark_verdict;
    // Positioned: why the log is not the one that was read.
    std::optional<std::string> other_log;
    // Taken since the last seal().
    bool open = false;
    std::int64_t open_first = 0;
    std::int64_t open_end = 0;
    Delivered open_last;
  };
  using Partitions = std::map<std::int32_t, Partition>;

  void settle_start(std::int32_t id, Partition& p, const LogBounds& bounds, const LogVerdict& log);
  void report_start(std::int32_t id, const Partition& p, std::optional<std::int64_t> committed,
                    const Recovery& plan) const;
  void report_retention_start(std::int32_t id, const Partition& p,
                              std::optional<std::int64_t> committed, const LogVerdict& log,
                              std::int64_t offset);
  bool mark_look_done(std::int32_t id, Partition& p);
  void ask_for_look(std::int32_t id, LogWatch::StartedLook& look);
  void look_if_due(std::int32_t id, Partition& p, Clock::time_point now);
  void take_looks(Clock::time_point now);
  void take_look(std::int32_t id, Partition& p, const LogLooks::LookAnswer& answer,
                 Clock::time_point now);
  void take_mark_look(std::int32_t id, Partition& p, const LogLooks::LookAnswer& answer,
                      Clock::time_point now);
  void follow_other_log(std::int32_t id, Partition& p, std::int64_t start);
  void say_unverified(std::int32_t id, Partition& p, const LogVerdict& verdict);
  static MarkValue value_of_mark(Partition& p, std::int64_t position);
  [[nodiscard]] std::optional<Claim> claim_of(const Mark::Value& mark) const;
  void recover(std::int32_t id, Partition& p, const Rewind& rewind);
  /// Takes over what the mark that was found, which is about this log, says of it.
  static void know_by_found(Partition& p, std::int64_t start);
  void report_recovery(std::int32_t id, const Partition& p, const Recovery& plan,
                       std::int64_t next) const;
  static void count_done(Partition& p);
  static Gaps gaps_to_mark(const Partition& p, std::int64_t position);
  [[nodiscard]] bool mark_says_all(const Partition& p) const;
  /// Whether its mark was compared with the one on the present connection.
  [[nodiscard]] bool compared_here(const Partition& p) const;
  [[nodiscard]] bool mark_moved(const Partition& p, std::int64_t position) const;
  void start_check(Partition& p);
  void finish_check(std::int32_t id, Partition& p, Clock::time_point now);
  void judge_jump(std::int32_t id, Partition& p, Clock::time_point now);
  /// `gone`: the offsets below the log's start that were in gaps.
  void note_expired(std::int32_t id, Partition& p, const Gaps& gone, ExpiredEvents events,
                    Instant oldest);
  void say_filled(std::int32_t id, Partition& p) const;
  /// Redis has lost events of these users, and the log may begin too late to have them all.
  void note_log_start(std::int32_t id, const LogBounds& bounds, const SlotSet& slots);
  void await_kafka(std::int32_t id, Partition& p, Clock::time_point now);
  void leave_behind(std::int32_t id, Partition& p);
  static void heard_kafka(Partition& p);
  [[nodiscard]] std::optional<std::int64_t> doubted_below(std::int32_t id,
                                                          const Partition& p) const;
  std::optional<Result<LogBounds>> answer_of(std::int32_t id, Partition& p);
  std::optional<LogBounds> bounds_of(std::int32_t id, Partition& p, Clock::time_point now);
  void after_mark(std::int32_t id, Partition& p, Mark::MarkOutcome outcome, Clock::time_point now);
  void tick_partition(std::int32_t id, Partition& p, Clock::time_point now, Instant wall_now);
  void failed(std::int32_t id, Partition& p, Clock::time_point now, std::string why);
  void recovered(Partition& p);
  void write_mark(Partition& p, std::int64_t offset, Clock::time_point now, Instant wall_now);
  /// Reading of the partition begins, or begins again, at `offset`; what was under way is void.
  void place(Partition& p, std::int64_t offset);
  static void move_again(Partition& p);
  void close_range(std::int32_t id, Partition& p);
  /// What a range of the partition that is about to be sent is stamped with.
  [[nodiscard]] virtual std::uint64_t send_stamp(std::int32_t /*id*/) const { return 0; }
  /// An answer of the LogLooks that may be to a question of a derived class.
  virtual bool take_other_look(const LogLooks::LookAnswer& /*answer*/) { return false; }
  void await_answers(std::span<const PartitionOffset> partitions);
  void await_looks(std::span<const PartitionOffset> partitions);
  Partition* find(std::int32_t id);
  void retire(std::unique_ptr<Mark> mark);
  void report(LogLevel level, std::string_view text) const;

  Store* store_;
  Epoch epoch_;
  OffsetSource* source_;
  LogLooks* looks_ = nullptr;
  bool logs_matter_ = false;  // looks_ was set once
  std::uint64_t looks_asked_ = 0;
  MarkOptions options_;
  Metrics* metrics_;
  LogCallback log_;
  base::Backoff backoff_;
  Partitions partitions_;
  Partitions::iterator last_found_ = partitions_.end();
  /// Everything since the start of the retention may be missing of these partitions, whatever the
  /// marks in Redis say. A doubt ends when marks that were written since then say it, and not with
  /// the assignment: a partition may be given up before that and taken over again, and its old mark
  /// would be believed.
  std::set<std::int32_t> doubts_;
  std::vector<Batch::BatchOffsets> sealed_;     // ranges closed before seal() is called
  std::vector<std::int32_t> to_ask_;            // asked together at the end of tick()
  std::vector<std::unique_ptr<Mark>> retired_;  // of revoked partitions, until their operation ends
  std::uint64_t generations_ = 0;
  bool hurry_ = false;
  SlotSet marks_gone_;
  std::vector<ExpiredEvents> expired_;
  std::string trouble_;
  std::uint32_t failures_logged_ = 0;  // the longest row of failures that the log knows of
};

}  // namespace fcap::updater
