#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "updater/pipeline/recovery.h"
#include "updater/pipeline/shard_port.h"
#include "updater/pipeline/shard_turns.h"

namespace fcap::updater {

/// Recovery where Redis is a cluster: each shard holds marks of its own (ShardMarks), and
/// everything that may be missing is a gap of some shards' marks, however small.
///
/// A partition is read once every shard's mark is confirmed, but for shards that are away
/// (ShardTurns). While Kafka cannot say whether some mark is about its log, only itself waits. An
/// event counts as done when a shard has acknowledged it on the connection on which its mark had
/// been confirmed before the event was sent; any other is given up into gaps of that shard before
/// its batch is done, and the filler reads it again.
class ShardRecovery final : public Recovery {
 public:
  ShardRecovery(RecoveryParts parts, std::shared_ptr<ShardPort> shards);

  void assigned(std::span<const PartitionOffset> partitions) override;
  void revoking(std::span<const PartitionOffset> partitions) override;
  void tick(Clock::time_point now, Instant wall_now, bool hurry) override;
  void fell(const Partition& p) override { fallen_.insert(p.id()); }
  void doubt_all() override;

  [[nodiscard]] bool waits() const override {
    return !parts_.partitions->empty() && turns_.waiting();
  }
  [[nodiscard]] bool more_fails() const noexcept override { return turns_.shards_away() > 0; }
  [[nodiscard]] const std::string& trouble() const noexcept override { return trouble_; }
  [[nodiscard]] bool settled() const override;

  [[nodiscard]] std::uint64_t stamp(const Partition& p) const override;
  [[nodiscard]] SlotSet not_counted(const Batch& batch, std::int32_t partition,
                                    std::uint64_t stamp) const override;
  void give_up(const Partition& p, const SlotSet& slots, Gap offsets) override;
  [[nodiscard]] bool is_away(std::uint16_t slot) const override { return turns_.away(slot); }

  void list_pieces(std::vector<GapPiece>& out) const override;
  [[nodiscard]] bool filling(const GapPiece& piece) const override;
  bool piece_done(const GapPiece& piece) override;
  void expire(const GapPiece& piece, std::int64_t log_start, std::optional<Instant> newest,
              Instant oldest) override;

  void list_gap_ends(std::vector<GapEnd>& out) const override;
  void tell_marks(MarkNews& news) override;
  [[nodiscard]] bool knows_gaps() const override;
  [[nodiscard]] std::int64_t offsets_missing() const override;

 private:
  struct LogQuestion {
    std::int32_t partition;
    KnownLog known;
    LogIdentity log;
    bool believe_unknown = false;  // if no message identifies the log any more
  };

  std::uint64_t ask_log(std::int32_t id, const MarkValue& mark);
  bool take_log_answer(const LogLooks::LookAnswer& answer);
  void report_other_log(const LogQuestion& asked, const LogVerdict& verdict);
  void start_partition(Partition& p, const LogBounds& bounds);
  void renew_marks(const Partition& p, std::int64_t retention_start);
  void find_start(Partition& p, Clock::time_point now);
  void prepare(Partition& p, Clock::time_point now);
  void follow_turns(Partition& p);
  void judge_lost(Partition& p, Clock::time_point now);
  [[nodiscard]] const ShardedPartition* sharded(std::int32_t id) const { return turns_.find(id); }

  const RecoveryParts parts_;
  // Mutable only because find() has no const form; sharded() gives nothing that can be changed.
  mutable ShardTurns turns_;
  std::map<std::uint64_t, LogQuestion> asked_;            // by ticket
  std::map<std::int32_t, Clock::time_point> pieces_due_;  // after one that failed in part
  struct Lost {
    SlotSet slots;               // of shards that have lost their marks
    Clock::time_point due = {};  // when Kafka is asked what it has no more
  };
  std::map<std::int32_t, Lost> lost_;
  std::set<std::int32_t> fallen_;  // whose logs go on below their positions
  std::set<std::int32_t> doubts_;  // as MarkRecovery's
  SlotSet marks_gone_;
  Clock::time_point now_{};  // of the last tick()
  std::string trouble_;
};

}  // namespace fcap::updater
