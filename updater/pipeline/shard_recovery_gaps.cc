// Which events count for a partition in a cluster, and what is read again.
#include <algorithm>
#include <limits>
#include <utility>

#include "updater/pipeline/shard_recovery.h"
#include "updater/process/invariant.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kPieceAgain{1000};
constexpr std::chrono::milliseconds kLostAgain{1000};

Gaps missing_of_all(const ShardMarks& marks) {
  return marks.missing().empty() ? Gaps{} : marks.missing().of(SlotSet::all());
}

}  // namespace

std::uint64_t ShardRecovery::stamp(const Partition& p) const {
  const ShardedPartition* const of_shards = sharded(p.id());
  return of_shards == nullptr ? 0 : of_shards->marks.stamp();
}

// The slots of each shard that has a write of the batch whose acknowledgement is missing or does
// not count.
SlotSet ShardRecovery::not_counted(const Batch& batch, std::int32_t partition,
                                   std::uint64_t stamp) const {
  const ShardedPartition* const of_shards = sharded(partition);
  if (of_shards == nullptr) return SlotSet::all();
  SlotSet slots;
  std::map<std::uint64_t, bool> counts;  // by connection
  for (std::size_t i = 0; i < batch.writes.size(); ++i) {
    if (batch.is_refused(i)) continue;  // a dead letter instead
    const std::uint64_t epoch = batch.epoch_of(i);
    const auto [known, is_new] = counts.try_emplace(epoch, false);
    if (is_new) {
      const std::string* const node = turns_.node_of(epoch);
      known->second = node != nullptr && of_shards->marks.counts(*node, epoch, stamp);
    }
    if (known->second) continue;
    const std::uint16_t slot = redis::slot_of(batch.writes.key(i));
    // All of the shard's slots, so that what is missing stays in few pieces.
    if (!slots.contains(slot)) slots |= turns_.slots_with(slot);
  }
  return slots;
}

void ShardRecovery::give_up(const Partition& p, const SlotSet& slots, Gap offsets) {
  ShardedPartition* const of_shards = turns_.find(p.id());
  must_hold(of_shards != nullptr, "a partition that is written has marks in the shards");
  of_shards->marks.give_up(slots, offsets);
}

void ShardRecovery::list_pieces(std::vector<GapPiece>& out) const {
  out.clear();
  for (const auto& [id, p] : *parts_.partitions) {
    const ShardedPartition* const of_shards = sharded(id);
    if (of_shards == nullptr || p.phase() < PartitionPhase::kPlacing) continue;
    if (of_shards->marks.missing().empty()) continue;
    const auto due = pieces_due_.find(id);
    if (due != pieces_due_.end() && now_ < due->second) continue;
    auto piece =
        of_shards->marks.piece(p.done_below().value_or(0), parts_.options.piece_offsets_max);
    if (!piece) continue;
    out.push_back({.partition = id,
                   .gaps_generation = p.generation(),
                   .epoch = 0,
                   .from = piece->offsets.from,
                   .to = piece->offsets.to,
                   .slots = std::move(piece->slots),
                   .stamp = of_shards->marks.stamp()});
  }
}

bool ShardRecovery::filling(const GapPiece& piece) const {
  const auto found = parts_.partitions->find(piece.partition);
  return found != parts_.partitions->end() && found->second.generation() == piece.gaps_generation;
}

bool ShardRecovery::piece_done(const GapPiece& piece) {
  ShardedPartition* const of_shards = turns_.find(piece.partition);
  if (of_shards == nullptr || !filling(piece)) return false;
  const SlotSet done = piece.slots - piece.failed;
  of_shards->marks.filled(done, {piece.from, piece.to}, piece.stamp);
  if (done != piece.slots) pieces_due_[piece.partition] = now_ + kPieceAgain;
  const Gaps missing = missing_of_all(of_shards->marks);
  if (missing.empty()) parts_.expired->filled(piece.partition);
  // Otherwise something as new is still missing for the users of other slots.
  return missing.empty() || missing.back().to <= piece.from;
}

void ShardRecovery::expire(const GapPiece& piece, std::int64_t log_start,
                           std::optional<Instant> newest, Instant oldest) {
  ShardedPartition* const of_shards = turns_.find(piece.partition);
  if (of_shards == nullptr || !filling(piece)) return;
  ExpiredEvents events{piece.partition, newest, {}};
  for (const MissingOffsets::MissingStretch& stretch : of_shards->marks.missing().stretches()) {
    if (!gaps_below(stretch.gaps, log_start).empty()) events.slots |= stretch.slots;
  }
  const Gaps gone = gaps_below(missing_of_all(of_shards->marks), log_start);
  of_shards->marks.expired(log_start);
  parts_.expired->expired_in_gaps(gone, std::move(events), oldest);
}

// Shards have lost events of a partition. Asks Kafka where the log begins now, because its answer
// when the partition was taken over may be old: what has expired since cannot be read again.
void ShardRecovery::judge_lost(Partition& p, Clock::time_point now) {
  const auto lost = lost_.find(p.id());
  if (lost == lost_.end() || now < lost->second.due) return;
  const auto answer = parts_.questions->answer_of(p);
  if (!answer) return;
  if (!answer->ok()) {
    lost->second.due = now + kLostAgain;
    return;
  }
  parts_.expired->lost(p.id(), answer->value(), lost->second.slots);
  lost_.erase(lost);
}

void ShardRecovery::list_gap_ends(std::vector<GapEnd>& out) const {
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  out.clear();
  for (const auto& [id, p] : *parts_.partitions) {
    const ShardedPartition* const of_shards = sharded(id);
    const bool doubted = doubts_.contains(id);
    if (of_shards == nullptr) {
      if (doubted) out.push_back({id, kAll});
      continue;
    }
    // What Redis states about a partition that is left out here stays. While the marks of a
    // partition are read for the first time, that statement is the best there is: the gaps of the
    // shards that were read so far may be too few, and "all users may lack events" would be too
    // many.
    const bool left_behind = p.check().left_behind;
    const bool reads_first = !of_shards->known && p.phase() < PartitionPhase::kPlacing;
    if (reads_first && !left_behind && !doubted) continue;
    const Gaps missing = missing_of_all(of_shards->marks);
    if (left_behind && of_shards->known) {
      // Some shard may have lost events of this partition, and nobody knows how many.
      out.push_back({id, p.next_offset().value_or(kAll)});
    } else if (!missing.empty()) {
      const SlotSet slots = of_shards->marks.missing().slots() | turns_.unknown(*of_shards);
      out.push_back({id, missing.back().to, slots});
    } else if (p.phase() >= PartitionPhase::kPlacing && turns_.all_known(*of_shards)) {
      out.push_back({.partition = id});
    }
  }
}

void ShardRecovery::tell_marks(MarkNews& news) {
  for (const auto& it : *parts_.partitions) {
    const ShardedPartition* const of_shards = sharded(it.first);
    if (of_shards != nullptr) news.compared[it.first] = turns_.compared(*of_shards);
  }
  news.gone = std::exchange(marks_gone_, {});
}

bool ShardRecovery::knows_gaps() const {
  return !waits() && std::ranges::all_of(*parts_.partitions, [this](const auto& it) {
    const ShardedPartition* const of_shards = sharded(it.first);
    return of_shards == nullptr || turns_.all_known(*of_shards);
  });
}

std::int64_t ShardRecovery::offsets_missing() const {
  std::int64_t sum = 0;
  for (const auto& it : *parts_.partitions) {
    const ShardedPartition* const of_shards = sharded(it.first);
    if (of_shards != nullptr) sum += offsets_in(missing_of_all(of_shards->marks));
  }
  return sum;
}

}  // namespace fcap::updater
