// What is read again while later messages are read, and what is said to be missing.
#include <algorithm>
#include <limits>
#include <utility>

#include "updater/pipeline/mark_recovery.h"

namespace fcap::updater {
namespace {

std::optional<std::int64_t> end_of(const Gaps& gaps) {
  return gaps.empty() ? std::nullopt : std::optional(gaps.back().to);
}

}  // namespace

void MarkRecovery::list_pieces(std::vector<GapPiece>& out) const {
  out.clear();
  const std::uint64_t epoch = epoch_();
  for (const auto& [id, m] : marked_) {
    const bool readable = parts_.partitions->at(id).phase() >= PartitionPhase::kPlacing;
    if (!readable || m.gaps.empty() || m.epoch != epoch) continue;
    const Gaps below = gaps_below(m.gaps, m.sure_from);
    if (below.empty()) continue;
    const Gap& newest = below.back();
    out.push_back({.partition = id,
                   .gaps_generation = m.gaps_generation,
                   .epoch = epoch,
                   .from = std::max(newest.from, newest.to - parts_.options.piece_offsets_max),
                   .to = newest.to});
  }
}

bool MarkRecovery::is_current(const GapPiece& piece) const {
  const auto found = marked_.find(piece.partition);
  return found != marked_.end() && found->second.gaps_generation == piece.gaps_generation;
}

bool MarkRecovery::filling(const GapPiece& piece) const {
  return is_current(piece) && piece.epoch == epoch_();
}

bool MarkRecovery::piece_done(const GapPiece& piece) {
  if (!is_current(piece)) return false;
  MarkedPartition& m = marked_.at(piece.partition);
  // Another connection may lead to another server, which lacks what was acknowledged.
  if (m.epoch != piece.epoch || epoch_() != piece.epoch) return false;
  m.gaps = gaps_without(m.gaps, {piece.from, piece.to});
  if (m.gaps.empty()) parts_.expired->filled(piece.partition);
  return true;
}

void MarkRecovery::expire(const GapPiece& piece, std::int64_t log_start,
                          std::optional<Instant> newest, Instant oldest) {
  if (!is_current(piece)) return;
  MarkedPartition& m = marked_.at(piece.partition);
  // What is missing above sure_from is read in line, not by the filler.
  const std::int64_t below = std::min(log_start, m.sure_from);
  const Gaps gone = gaps_below(m.gaps, below);
  m.gaps = gaps_without(m.gaps, {0, below});
  parts_.expired->expired_in_gaps(gone, {piece.partition, newest}, oldest);
}

bool MarkRecovery::compared_here(const Partition& p, const MarkedPartition& m) const {
  return p.phase() >= PartitionPhase::kConfirming && m.epoch == epoch_();
}

// Below which offset events of a partition that is left behind may be missing; nullopt: nothing
// shows that any are. Which of them are missing is not known before Kafka answers.
std::optional<std::int64_t> MarkRecovery::doubted_below(const Partition& p,
                                                        const MarkedPartition& m) const {
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  if (!p.check().left_behind) return std::nullopt;
  if (p.positioned()) return p.next_offset().value_or(kAll);
  // The partition was taken over. If it has a mark and nothing casts doubt on it, at most what was
  // committed behind that mark is missing, and nothing is stated about so little.
  return m.mark->found() && !doubts_.contains(p.id()) ? std::nullopt : std::optional(kAll);
}

void MarkRecovery::list_gap_ends(std::vector<GapEnd>& out) const {
  out.clear();
  for (const auto& [id, m] : marked_) {
    const Partition& p = parts_.partitions->at(id);
    const auto doubted = doubted_below(p, m);
    if (!compared_here(p, m)) {
      // The partition is left out, so what Redis states of it stays. That came with the data set
      // that is there now; what was found in a former one says nothing of it.
      if (doubted) out.push_back({id, std::max(doubted, end_of(m.gaps))});
    } else if (!m.gaps.empty() || p.phase() >= PartitionPhase::kPlacing) {
      out.push_back({id, end_of(m.gaps)});
    }
  }
}

void MarkRecovery::tell_marks(MarkNews& news) {
  for (const auto& [id, m] : marked_) {
    if (compared_here(parts_.partitions->at(id), m)) news.compared[id] = m.compared;
  }
  news.gone = std::exchange(marks_gone_, {});
}

std::int64_t MarkRecovery::offsets_missing() const {
  std::int64_t sum = 0;
  for (const auto& [id, m] : marked_) sum += offsets_in(m.gaps);
  return sum;
}

}  // namespace fcap::updater
