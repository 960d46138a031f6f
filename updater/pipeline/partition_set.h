#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <fcap/redis_options.h>
#include <fcap/status.h>
#include <fcap/store.h>
#include <fcap/time.h>

#include "updater/metrics/metrics.h"
#include "updater/pipeline/backoff.h"
#include "updater/pipeline/batch.h"
#include "updater/pipeline/kafka_consumer.h"
#include "updater/pipeline/mark.h"
#include "updater/pipeline/offset_tracker.h"
#include "updater/pipeline/rewind.h"

namespace fcap::updater {

/// What partitions need to know of Kafka's log.
class OffsetSource {
 public:
  /// Fills in the group's committed offsets; kNone where there is none.
  virtual Status committed(std::vector<PartitionOffset>& partitions) = 0;
  /// The first offset that may hold an event within retention.
  virtual Result<std::int64_t> retention_start(std::int32_t partition) = 0;
  /// The end of the log as last heard; none when nothing was heard yet. Asks nobody.
  [[nodiscard]] virtual std::optional<std::int64_t> known_end(std::int32_t partition) const = 0;

 protected:
  ~OffsetSource() = default;
};

struct MarkOptions {
  std::string key_prefix = "fcap";
  std::string group_id;
  std::string topic;
  /// A mark outlives the events it speaks for: it is kept for twice the retention. An older one may
  /// go: everything before it has expired, and a missing mark starts at the retention's start.
  std::chrono::milliseconds retention = std::chrono::days{32};
  std::chrono::milliseconds deadline{1000};
  /// Between two marks of a partition that moves, and of one that does not.
  std::chrono::milliseconds interval{100};
  std::chrono::milliseconds idle_interval{1000};
  std::chrono::milliseconds backoff_min{20};
  std::chrono::milliseconds backoff_max{1000};
  std::uint64_t jitter_seed = 1;
};

/// The assigned partitions: where each one's reading is, up to where everything is done, what mark
/// Redis holds of it, and when it must go back.
///
/// A partition is read only in phase kReading. It leaves that phase when its mark must be compared
/// (kChecking: at assignment, after a conflict, after a write that failed, after a reconnection);
/// then a mark must be acknowledged on the present connection (kConfirming), because without marks
/// nobody would notice that Redis has lost what is read; then the consumer must be moved
/// (kPlacing).
///
/// Thread safety: one thread.
class PartitionSet {
 public:
  using Clock = std::chrono::steady_clock;
  /// Grows with each connection to the store made or lost.
  using Epoch = std::function<std::uint64_t()>;

  PartitionSet(Store& store, Epoch epoch, OffsetSource& source, MarkOptions options,
               Metrics& metrics, LogCallback log);
  /// Waits for marks that are under way (at most their deadline).
  ~PartitionSet();
  PartitionSet(const PartitionSet&) = delete;
  PartitionSet& operator=(const PartitionSet&) = delete;

  /// Takes partitions over and says where each begins. Reads their marks and waits for them up to
  /// the marks' deadline; one that cannot be judged yet gets kNone and starts in kChecking. None is
  /// read before tick() has confirmed its mark.
  void assign(std::vector<PartitionOffset>& partitions);
  /// Gives partitions up; their metrics go with them.
  void revoke(std::span<const PartitionOffset> partitions);

  /// Moves everything on: reads and writes marks, notices lost connections, decides rewinds.
  void tick(Clock::time_point now, Instant wall_now);

  /// Some mark is being compared or confirmed: nothing should be read now.
  [[nodiscard]] bool checking() const noexcept;
  /// Fills in the partitions that the consumer must be moved to before it is polled again.
  void to_place(std::vector<PartitionOffset>& out) const;
  void placed(std::int32_t partition);
  /// The consumer no longer stands where it was (resumed, or polled across a rebalance).
  void place_again();

  /// A message of a partition was taken in. False: it must be dropped (not being read).
  bool take(std::int32_t partition, std::int64_t offset);
  /// A dead letter of this message is under way: until it has arrived, the partition's offsets do
  /// not move beyond it. Gives the generation to close it with.
  std::uint64_t open_letter(std::int32_t partition, std::int64_t offset);
  void close_letter(std::int32_t partition, std::uint64_t generation, std::int64_t offset);
  /// Whether the partition is assigned, and still in this generation.
  [[nodiscard]] bool current(std::int32_t partition, std::uint64_t generation) const;
  /// A partition that is held is not read; when it is let go, the consumer must be moved.
  void hold(std::int32_t partition, bool held);
  [[nodiscard]] bool held(std::int32_t partition) const;

  /// What was taken since the last call, as ranges of a batch.
  void seal(std::vector<Batch::Range>& ranges);
  void complete(const Batch::Range& range);

  /// Offsets to commit that differ from those collected before.
  void collect_commits(std::vector<PartitionOffset>& out);
  /// The offsets collected before may not have been committed.
  void forget_commits();

  /// Some mark could not be read or written and is being tried again.
  [[nodiscard]] bool failing() const noexcept;
  /// The last failure while failing(), with the server's words.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }
  /// Whether every mark that can be written has been.
  [[nodiscard]] bool marks_settled() const noexcept;
  /// Writes marks at once, not by their interval, until the next tick.
  void hurry() noexcept { hurry_ = true; }

  /// Puts into the metrics how far what is done lies behind the ends.
  void report_lag();

  [[nodiscard]] std::size_t size() const noexcept { return partitions_.size(); }
  void list(std::vector<PartitionOffset>& out) const;
  /// Everything below it is done; none: unknown or not assigned.
  [[nodiscard]] std::optional<std::int64_t> low_water(std::int32_t partition) const;

 private:
  enum class Phase : std::uint8_t { kChecking, kConfirming, kPlacing, kReading };
  struct Partition {
    explicit Partition(std::unique_ptr<Mark> m) : mark(std::move(m)) {}
    std::unique_ptr<Mark> mark;
    Phase phase = Phase::kChecking;
    bool positioned = false;  // tracker says where reading is
    std::uint64_t generation = 0;
    OffsetTracker tracker;
    std::multiset<std::int64_t> letters;  // offsets whose dead letters have not arrived
    bool held = false;
    /// Everything below it is done, dead letters included.
    [[nodiscard]] std::optional<std::int64_t> done_below() const;
    bool must_move = false;  // the consumer stands elsewhere than at place_at
    std::int64_t place_at = 0;
    bool reconnected = false;  // kChecking: since the mark was confirmed
    bool mark_may_fall = false;
    bool first_message = true;          // none was taken since the partition was placed
    std::uint64_t epoch = 0;            // of the connections when the mark was compared
    std::uint64_t operation_epoch = 0;  // when the operation under way was started
    Clock::time_point mark_due{};
    std::uint32_t failures = 0;
    std::optional<std::int64_t> commit_sent;
    // Taken since the last seal().
    bool open = false;
    std::int64_t open_first = 0;
    std::int64_t open_end = 0;
  };
  using Partitions = std::map<std::int32_t, Partition>;

  void settle_start(std::int32_t id, Partition& p, std::optional<std::int64_t> committed);
  void report_retention_start(std::int32_t id, const Partition& p,
                              std::optional<std::int64_t> committed, std::int64_t offset);
  void start_check(Partition& p);
  void finish_check(std::int32_t id, Partition& p);
  void after_mark(std::int32_t id, Partition& p, Mark::Outcome outcome, Clock::time_point now);
  void act(std::int32_t id, Partition& p, Clock::time_point now, Instant wall_now);
  void failed(std::int32_t id, Partition& p, Clock::time_point now, std::string why);
  void recovered(Partition& p);
  void write_mark(Partition& p, std::int64_t offset, Clock::time_point now, Instant wall_now);
  void place(Partition& p, std::int64_t offset);
  bool rewind_to(std::int32_t id, Partition& p, const Rewind& rewind);
  static void move_again(Partition& p);
  void close_range(std::int32_t id, Partition& p);
  void await_marks(std::span<const PartitionOffset> partitions);
  Partition* find(std::int32_t id);
  void retire(std::unique_ptr<Mark> mark);
  void report(LogLevel level, std::string_view text) const;

  Store* store_;
  Epoch epoch_;
  OffsetSource* source_;
  MarkOptions options_;
  Metrics* metrics_;
  LogCallback log_;
  Backoff backoff_;
  Partitions partitions_;
  Partitions::iterator last_found_ = partitions_.end();
  std::vector<Batch::Range> sealed_;            // ranges closed before seal() is called
  std::vector<std::unique_ptr<Mark>> retired_;  // of revoked partitions, until their operation ends
  std::uint64_t generations_ = 0;
  bool hurry_ = false;
  std::string trouble_;
  std::uint32_t failures_logged_ = 0;  // the longest row of failures that the log knows of
};

}  // namespace fcap::updater
