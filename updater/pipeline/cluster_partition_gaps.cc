// Which events count for a partition in a cluster, and what is read again.
#include <algorithm>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "updater/pipeline/cluster_partition_set.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kPieceAgain{1000};
constexpr std::chrono::milliseconds kAskAgain{1000};

Gaps missing_of_all(const ShardMarks& marks) {
  return marks.missing().empty() ? Gaps{} : marks.missing().of(SlotSet::all());
}

}  // namespace

std::uint64_t ClusterPartitionSet::send_stamp(std::int32_t partition) const {
  const ShardedPartition* const of_shards = sharded(partition);
  return of_shards == nullptr ? 0 : of_shards->marks.stamp();
}

// The slots of each shard that has a write of the batch whose acknowledgement is missing or does
// not count.
SlotSet ClusterPartitionSet::not_counted(const Batch& batch, const ShardMarks& marks,
                                         std::uint64_t stamp) const {
  SlotSet slots;
  std::map<std::uint64_t, bool> counts;  // by connection
  for (std::size_t i = 0; i < batch.writes.size(); ++i) {
    if (batch.is_refused(i)) continue;  // a dead letter instead
    const std::uint64_t epoch = batch.epoch_of(i);
    const auto [known, is_new] = counts.try_emplace(epoch, false);
    if (is_new) {
      const std::string* const node = turns_.node_of(epoch);
      known->second = node != nullptr && marks.counts(*node, epoch, stamp);
    }
    if (known->second) continue;
    const std::uint16_t slot = redis::slot_of(batch.writes.key(i));
    // All of the shard's slots, so that what is missing stays in few pieces.
    if (!slots.contains(slot)) slots |= turns_.slots_with(slot);
  }
  return slots;
}

void ClusterPartitionSet::complete_batch(const Batch& batch) {
  for (const Batch::BatchOffsets& range : batch.ranges) {
    const Partition* const p = find(range.partition);
    ShardedPartition* const of_shards = turns_.find(range.partition);
    if (p == nullptr || of_shards == nullptr || p->generation != range.generation) continue;
    const SlotSet slots = not_counted(batch, of_shards->marks, range.stamp);
    // First the gap, then complete(): in the other order a mark could be written, or an offset
    // committed, beyond these events while no gap names them, and nothing would read them again.
    if (!slots.empty()) of_shards->marks.give_up(slots, {range.first, range.end});
    complete(range);
  }
}

void ClusterPartitionSet::list_pieces(std::vector<GapPiece>& out) const {
  out.clear();
  for (const auto& [id, p] : partitions_) {
    const ShardedPartition* const of_shards = sharded(id);
    if (of_shards == nullptr || p.phase < PartitionPhase::kPlacing) continue;
    if (of_shards->marks.missing().empty()) continue;
    const auto due = pieces_due_.find(id);
    if (due != pieces_due_.end() && Clock::now() < due->second) continue;
    auto piece = of_shards->marks.piece(p.done_below().value_or(0), options_.piece_offsets_max);
    if (!piece) continue;
    out.push_back({.partition = id,
                   .gaps_generation = p.gaps_generation,
                   .epoch = 0,
                   .from = piece->offsets.from,
                   .to = piece->offsets.to,
                   .slots = std::move(piece->slots),
                   .stamp = of_shards->marks.stamp()});
  }
}

bool ClusterPartitionSet::filling(const GapPiece& piece) const {
  const auto found = partitions_.find(piece.partition);
  return found != partitions_.end() && found->second.gaps_generation == piece.gaps_generation;
}

void ClusterPartitionSet::count_piece(GapPiece& piece, const Batch& batch) {
  const ShardedPartition* const of_shards = sharded(piece.partition);
  if (of_shards != nullptr) {
    piece.failed |= not_counted(batch, of_shards->marks, piece.stamp);
  }
}

bool ClusterPartitionSet::piece_done(const GapPiece& piece) {
  ShardedPartition* const of_shards = turns_.find(piece.partition);
  if (of_shards == nullptr || !filling(piece)) return false;
  const SlotSet done = piece.slots - piece.failed;
  of_shards->marks.filled(done, {piece.from, piece.to}, piece.stamp);
  if (done != piece.slots) pieces_due_[piece.partition] = Clock::now() + kPieceAgain;
  const Gaps missing = missing_of_all(of_shards->marks);
  if (missing.empty()) say_filled(piece.partition, partitions_.at(piece.partition));
  // Otherwise something as new is still missing for the users of other slots.
  return missing.empty() || missing.back().to <= piece.from;
}

void ClusterPartitionSet::expire(const GapPiece& piece, std::int64_t log_start,
                                 std::optional<Instant> newest, Instant oldest) {
  ShardedPartition* const of_shards = turns_.find(piece.partition);
  if (of_shards == nullptr || !filling(piece)) return;
  ExpiredEvents events{piece.partition, newest, {}};
  for (const MissingOffsets::MissingStretch& stretch : of_shards->marks.missing().stretches()) {
    if (!gaps_below(stretch.gaps, log_start).empty()) events.slots |= stretch.slots;
  }
  const Gaps gone = gaps_below(missing_of_all(of_shards->marks), log_start);
  of_shards->marks.expired(log_start);
  note_expired(piece.partition, partitions_.at(piece.partition), gone, std::move(events), oldest);
}

// Shards have lost events of a partition. Asks Kafka where the log begins now, because its answer
// when the partition was taken over may be old: what has expired since cannot be read again.
void ClusterPartitionSet::judge_lost(std::int32_t id, Partition& p, Clock::time_point now) {
  const auto lost = lost_.find(id);
  if (lost == lost_.end() || now < lost->second.due) return;
  const auto answer = answer_of(id, p);
  if (!answer) return;
  if (!answer->ok()) {
    lost->second.due = now + kAskAgain;
    return;
  }
  note_log_start(id, answer->value(), lost->second.slots);
  lost_.erase(lost);
}

void ClusterPartitionSet::list_gap_ends(std::vector<GapEnd>& out) const {
  out.clear();
  for (const auto& [id, p] : partitions_) {
    const ShardedPartition* const of_shards = sharded(id);
    const bool doubted = doubts_.contains(id);
    if (of_shards == nullptr) {
      if (doubted) out.push_back({id, std::numeric_limits<std::int64_t>::max()});
      continue;
    }
    // What Redis states about a partition that is left out here stays. While the marks of a
    // partition are read for the first time, that statement is the best there is: the gaps of the
    // shards that were read so far may be too few, and "all users may lack events" would be too
    // many.
    const bool reads_first = !of_shards->known && p.phase < PartitionPhase::kPlacing;
    if (reads_first && !p.left_behind && !doubted) continue;
    const Gaps missing = missing_of_all(of_shards->marks);
    if (p.left_behind && of_shards->known) {
      // Some shard may have lost events of this partition, and nobody knows how many.
      out.push_back({id, doubted_below(id, p)});
    } else if (!missing.empty()) {
      const SlotSet slots = of_shards->marks.missing().slots() | turns_.unknown(*of_shards);
      out.push_back({id, missing.back().to, slots});
    } else if (p.phase >= PartitionPhase::kPlacing && turns_.all_known(*of_shards)) {
      out.push_back({.partition = id});
    }
  }
}

void ClusterPartitionSet::list_compared(std::map<std::int32_t, Clock::time_point>& out) const {
  for (const auto& [id, p] : partitions_) {
    const ShardedPartition* const of_shards = sharded(id);
    if (of_shards != nullptr) out[id] = turns_.compared(*of_shards);
  }
}

bool ClusterPartitionSet::gaps_known() const noexcept {
  return PartitionSet::gaps_known() && !checking() &&
         std::ranges::all_of(partitions_, [this](const auto& it) {
           const ShardedPartition* const of_shards = sharded(it.first);
           return of_shards == nullptr || turns_.all_known(*of_shards);
         });
}

std::int64_t ClusterPartitionSet::offsets_missing() const noexcept {
  std::int64_t sum = 0;
  for (const auto& [id, p] : partitions_) {
    const ShardedPartition* const of_shards = sharded(id);
    if (of_shards != nullptr) sum += offsets_in(missing_of_all(of_shards->marks));
  }
  return sum;
}

}  // namespace fcap::updater
