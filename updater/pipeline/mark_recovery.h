#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcap/store.h>

#include "updater/pipeline/marked_partition.h"
#include "updater/pipeline/recovery.h"

namespace fcap::updater {

/// Recovery where one server has all records, alone or behind Sentinels: each partition has one
/// mark. Events that may be missing are read again in line if they are few; otherwise they become a
/// gap of the mark, which is handed out in pieces.
class MarkRecovery final : public Recovery {
 public:
  /// Grows with each connection to the store made or lost.
  using Epoch = std::function<std::uint64_t()>;

  MarkRecovery(RecoveryParts parts, Store& store, Epoch epoch);
  /// Waits for pending operations on marks (at most until their deadline).
  ~MarkRecovery() override;

  void assigned(std::span<const PartitionOffset> partitions) override;
  void revoking(std::span<const PartitionOffset> partitions) override;
  void tick(Clock::time_point now, Instant wall_now, bool hurry) override;
  void fell(const Partition& p) override;
  void doubt_all() override;

  [[nodiscard]] bool waits() const override { return false; }
  [[nodiscard]] bool more_fails() const noexcept override { return false; }
  [[nodiscard]] const std::string& trouble() const noexcept override {
    return parts_.troubles->text();
  }
  [[nodiscard]] bool settled() const override;

  [[nodiscard]] std::uint64_t stamp(const Partition& p) const override;
  [[nodiscard]] SlotSet not_counted(const Batch& /*batch*/, std::int32_t /*partition*/,
                                    std::uint64_t /*stamp*/) const override {
    return {};
  }
  void give_up(const Partition& /*p*/, const SlotSet& /*slots*/, Gap /*offsets*/) override {}
  [[nodiscard]] bool is_away(std::uint16_t /*slot*/) const override { return false; }

  void list_pieces(std::vector<GapPiece>& out) const override;
  [[nodiscard]] bool filling(const GapPiece& piece) const override;
  bool piece_done(const GapPiece& piece) override;
  void expire(const GapPiece& piece, std::int64_t log_start, std::optional<Instant> newest,
              Instant oldest) override;

  void list_gap_ends(std::vector<GapEnd>& out) const override;
  void tell_marks(MarkNews& news) override;
  [[nodiscard]] bool knows_gaps() const override { return true; }
  [[nodiscard]] std::int64_t offsets_missing() const override;

 private:
  void start_check(Partition& p, MarkedPartition& m);
  void finish_check(Partition& p, MarkedPartition& m, Clock::time_point now);
  void settle_start(Partition& p, MarkedPartition& m, const LogBounds& bounds,
                    const LogVerdict& log);
  RecoveryPlan begin_by_mark(const Partition& p, const MarkedPartition& m, const LogBounds& bounds,
                             const Claim& found, std::int64_t offset);
  /// `believed`: the mark claims something, but the group has not committed there.
  RecoveryPlan begin_at_retention_start(const Partition& p, const MarkedPartition& m,
                                        const LogBounds& bounds, const LogVerdict& log,
                                        bool believed);
  void recover(Partition& p, MarkedPartition& m, const Rewind& rewind);
  bool mark_look_done(Partition& p, MarkedPartition& m);
  bool take_mark_look(const LogLooks::LookAnswer& answer, Clock::time_point now);
  void await_answers(std::span<const PartitionOffset> partitions);
  void await_looks(std::span<const PartitionOffset> partitions);
  void take_looks(Clock::time_point now);
  void after_mark(Partition& p, MarkedPartition& m, Mark::MarkOutcome outcome,
                  Clock::time_point now);
  void after_write(Partition& p, MarkedPartition& m);
  void tick_partition(Partition& p, MarkedPartition& m, Clock::time_point now, Instant wall_now,
                      bool hurry);
  void write_mark(Partition& p, MarkedPartition& m, std::int64_t offset, Clock::time_point now,
                  Instant wall_now);
  void place(Partition& p, MarkedPartition& m, std::int64_t offset);
  [[nodiscard]] bool compared_here(const Partition& p, const MarkedPartition& m) const;
  [[nodiscard]] std::optional<std::int64_t> doubted_below(const Partition& p,
                                                          const MarkedPartition& m) const;
  [[nodiscard]] bool is_current(const GapPiece& piece) const;
  void retire(std::unique_ptr<Mark> mark);
  void drop_retired();

  const RecoveryParts parts_;
  Store* store_;
  Epoch epoch_;
  std::map<std::int32_t, MarkedPartition> marked_;  // exactly the assigned partitions
  /// Everything since the start of the retention may be missing of these partitions, whatever the
  /// marks in Redis say. A doubt ends when marks that were written since then say it, and not with
  /// the assignment: a partition may be given up before that and taken over again, and its old mark
  /// would be believed.
  std::set<std::int32_t> doubts_;
  std::vector<std::unique_ptr<Mark>> retired_;  // of revoked partitions, until their operation ends
  std::uint64_t gaps_generations_ = 0;          // the last one given
  SlotSet marks_gone_;
};

}  // namespace fcap::updater
