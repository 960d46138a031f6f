#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fcap/log.h>
#include <fcap/time.h>

#include "kafka/partition_lists.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/batch.h"
#include "updater/pipeline/expired_book.h"
#include "updater/pipeline/gap_times.h"
#include "updater/pipeline/loss_statement.h"
#include "updater/pipeline/mark_options.h"
#include "updater/pipeline/partition.h"
#include "updater/pipeline/partition_questions.h"
#include "updater/pipeline/partition_troubles.h"

namespace fcap::updater {

using kafka::PartitionOffset;

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

/// Decides by the marks in Redis when each partition may be read, what is read again, and what is
/// said to be missing. Its partitions are those of a PartitionSet, which tells it what happens.
///
/// Thread safety: one thread.
class Recovery {
 public:
  using Clock = Partition::Clock;

  /// What it works with; all must outlive it.
  struct RecoveryParts {
    MarkOptions options;
    Partitions* partitions;
    PartitionQuestions* questions;
    PartitionTroubles* troubles;
    ExpiredBook* expired;
    Metrics* metrics;
    LogCallback log;

    void report(LogLevel level, const std::string& text) const {
      if (log) log(level, text);
    }
  };

  virtual ~Recovery() = default;

  /// Finds out where these partitions begin, which were just assigned; waits for Redis and Kafka,
  /// for each up to the marks' deadline. tick() goes on with those of which it is not known by
  /// then.
  virtual void assigned(std::span<const PartitionOffset> partitions) = 0;
  /// To be called before partitions are removed, and before they are assigned: one may be assigned
  /// although it is, and begins again, as if it had been revoked.
  virtual void revoking(std::span<const PartitionOffset> partitions) = 0;
  /// Does what is due. `hurry`: marks are written at once, not by their interval.
  virtual void tick(Clock::time_point now, Instant wall_now, bool hurry) = 0;
  /// Reading of the partition has begun again, below where it was.
  virtual void fell(const Partition& p) = 0;
  /// Redis may have dropped records that still count without a trace in any mark: everything since
  /// the start of the retention is read again.
  virtual void doubt_all() = 0;

  /// Nothing should be read now of any partition, whatever their phases are.
  [[nodiscard]] virtual bool waits() const = 0;
  /// Something fails that PartitionTroubles does not know.
  [[nodiscard]] virtual bool more_fails() const noexcept = 0;
  /// The last failure while PartitionSet::failing(), with the server's words.
  [[nodiscard]] virtual const std::string& trouble() const noexcept = 0;
  /// Whether every mark that can be written has been.
  [[nodiscard]] virtual bool settled() const = 0;

  /// What a range of the partition that is about to be sent is stamped with.
  [[nodiscard]] virtual std::uint64_t stamp(const Partition& p) const = 0;
  /// The slots of whose users some writes do not count, although the batch is done: those that were
  /// not acknowledged, or not on a connection behind which the partition's mark was confirmed when
  /// they were sent, at `stamp`.
  [[nodiscard]] virtual SlotSet not_counted(const Batch& batch, std::int32_t partition,
                                            std::uint64_t stamp) const = 0;
  /// These offsets are missing for the users of these slots.
  virtual void give_up(const Partition& p, const SlotSet& slots, Gap offsets) = 0;
  /// Whether the shard of this slot is not waited for: writes there that fail are given up.
  [[nodiscard]] virtual bool is_away(std::uint16_t slot) const = 0;

  /// The newest piece of each partition that has a gap and is being read.
  virtual void list_pieces(std::vector<GapPiece>& out) const = 0;
  /// Whether it is worth continuing with a piece.
  [[nodiscard]] virtual bool filling(const GapPiece& piece) const = 0;
  /// Everything in it has been acknowledged, dead letters included. False: it does not count,
  /// because Redis may have lost some of it, and will be handed out again if it is still missing.
  virtual bool piece_done(const GapPiece& piece) = 0;
  /// The log begins at `log_start`, within the piece or behind it: what gaps hold below it is
  /// missing for good. `newest`: as in ExpiredEvents. Events before `oldest` do not count any more.
  virtual void expire(const GapPiece& piece, std::int64_t log_start, std::optional<Instant> newest,
                      Instant oldest) = 0;

  /// For each partition whose gaps are known, the end of its newest gap, or that it has none. For
  /// each that has lost something while Kafka cannot say how much must be read again, the offset
  /// below which events may be missing. What is stated of a partition that is left out stays as it
  /// is.
  virtual void list_gap_ends(std::vector<GapEnd>& out) const = 0;
  /// Fills in what was compared, and what is gone since the last call.
  virtual void tell_marks(MarkNews& news) = 0;
  /// Whether it is known what is missing, of partitions that may be read.
  [[nodiscard]] virtual bool knows_gaps() const = 0;
  /// How many offsets are in gaps, as far as is known.
  [[nodiscard]] virtual std::int64_t offsets_missing() const = 0;

 protected:
  Recovery() = default;
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;
};

}  // namespace fcap::updater
