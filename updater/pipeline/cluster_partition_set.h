#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "redis/client.h"
#include "updater/pipeline/partition_set.h"
#include "updater/pipeline/shard_turns.h"

namespace fcap::updater {

/// The assigned partitions where Redis is a cluster: each shard holds marks of its own
/// (ShardMarks), and everything that may be missing is a gap of some shards' marks, however small.
///
/// A partition is read once every shard's mark is confirmed, but for shards that are away
/// (ShardTurns). While Kafka cannot say whether some mark is about its log, only itself waits. An
/// event counts as done when a shard has acknowledged it on the connection on which its mark had
/// been confirmed before the event was sent; any other is given up into gaps of that shard before
/// its batch is done, and the filler reads it again.
class ClusterPartitionSet final : public PartitionSet {
 public:
  /// `client`: of a cluster.
  ClusterPartitionSet(Store& store, std::shared_ptr<redis::Client> client, Epoch epoch,
                      OffsetSource& source, MarkOptions options, Metrics& metrics, LogCallback log);

  void assign(std::vector<PartitionOffset>& partitions) override;
  void revoke(std::span<const PartitionOffset> partitions) override;
  void tick(Clock::time_point now, Instant wall_now) override;
  [[nodiscard]] bool checking() const noexcept override;
  void complete_batch(const Batch& batch) override;
  [[nodiscard]] bool failing() const noexcept override;
  [[nodiscard]] const std::string& trouble() const noexcept override { return shards_trouble_; }
  [[nodiscard]] bool marks_settled() const noexcept override;
  void doubt_all() override;
  [[nodiscard]] bool gives_up(std::uint16_t slot) const override { return turns_.away(slot); }
  [[nodiscard]] bool by_slot() const noexcept override { return true; }

  void list_pieces(std::vector<GapPiece>& out) const override;
  [[nodiscard]] bool filling(const GapPiece& piece) const override;
  void count_piece(GapPiece& piece, const Batch& batch) override;
  bool piece_done(const GapPiece& piece) override;
  void expire(const GapPiece& piece, std::int64_t log_start, std::optional<Instant> newest,
              Instant oldest) override;
  void list_gap_ends(std::vector<GapEnd>& out) const override;
  void list_compared(std::map<std::int32_t, Clock::time_point>& out) const override;
  [[nodiscard]] bool gaps_known() const noexcept override;
  [[nodiscard]] std::int64_t offsets_missing() const noexcept override;

 private:
  struct LogQuestion {
    std::int32_t partition;
    KnownLog known;
    LogIdentity log;
    bool believe_unknown = false;  // if no message identifies the log any more
  };

  bool take_other_look(const LogLooks::LookAnswer& answer) override;
  std::uint64_t send_stamp(std::int32_t partition) const override;
  std::uint64_t ask_log(std::int32_t id, const MarkValue& mark);
  void start_partition(std::int32_t id, Partition& p, const LogBounds& bounds);
  void renew_marks(std::int32_t id, Partition& p, std::int64_t retention_start);
  void find_start(std::int32_t id, Partition& p, Clock::time_point now);
  void prepare(std::int32_t id, Partition& p, Clock::time_point now);
  void follow_turns(std::int32_t id, Partition& p);
  void judge_lost(std::int32_t id, Partition& p, Clock::time_point now);
  [[nodiscard]] SlotSet not_counted(const Batch& batch, const ShardMarks& marks,
                                    std::uint64_t stamp) const;
  [[nodiscard]] const ShardedPartition* sharded(std::int32_t id) const;

  // Mutable only because find() has no const form; sharded() gives nothing that can be changed.
  mutable ShardTurns turns_;
  std::map<std::uint64_t, LogQuestion> asked_;            // by ticket
  std::map<std::int32_t, Clock::time_point> pieces_due_;  // after one that failed in part
  struct Lost {
    SlotSet slots;               // of shards that have lost their marks
    Clock::time_point due = {};  // when Kafka is asked what it has no more
  };
  std::map<std::int32_t, Lost> lost_;
  std::string shards_trouble_;
};

}  // namespace fcap::updater
