#include "updater/pipeline/partition_set.h"

#include <algorithm>

#include <fmt/format.h>

#include "updater/pipeline/mark_recovery.h"
#include "updater/pipeline/shard_recovery.h"

namespace fcap::updater {

PartitionSet::PartitionSet(Store& store, Epoch epoch, OffsetSource& source,
                           const MarkOptions& options, Metrics& metrics, const LogCallback& log,
                           std::shared_ptr<ShardPort> shards)
    : by_slot_(shards != nullptr),
      metrics_(&metrics),
      log_(log),
      troubles_(options, partitions_, metrics, log),
      expired_(metrics, log),
      questions_(source, options, partitions_, troubles_, expired_, metrics, log) {
  Recovery::RecoveryParts parts{options,   &partitions_, &questions_, &troubles_,
                                &expired_, &metrics,     log};
  if (shards) {
    recovery_ = std::make_unique<ShardRecovery>(std::move(parts), std::move(shards));
  } else {
    recovery_ = std::make_unique<MarkRecovery>(std::move(parts), store, std::move(epoch));
  }
}

PartitionSet::~PartitionSet() = default;

Partition* PartitionSet::find(std::int32_t id) {
  // Kafka delivers many messages of one partition in a row, so the last one found is often the
  // next.
  if (last_found_ == partitions_.end() || last_found_->first != id) {
    last_found_ = partitions_.find(id);
  }
  return last_found_ == partitions_.end() ? nullptr : &last_found_->second;
}

const Partition* PartitionSet::find(std::int32_t id) const {
  const auto found = partitions_.find(id);
  return found == partitions_.end() ? nullptr : &found->second;
}

// --- Assignment.

void PartitionSet::show_assigned() {
  metrics_->assigned_partitions.set(static_cast<std::int64_t>(partitions_.size()));
}

void PartitionSet::assign(std::vector<PartitionOffset>& partitions) {
  last_found_ = partitions_.end();
  recovery_->revoking(partitions);
  for (const PartitionOffset& at : partitions) {
    expired_.revoked(at.partition);
    partitions_.erase(at.partition);
    partitions_.try_emplace(at.partition, at.partition, generations_);
  }
  recovery_->assigned(partitions);
  for (PartitionOffset& at : partitions) {
    Partition& p = partitions_.at(at.partition);
    if (!p.positioned()) continue;
    at.offset = p.place_at();
    p.moved();
  }
  show_assigned();
}

void PartitionSet::revoke(std::span<const PartitionOffset> partitions) {
  last_found_ = partitions_.end();
  recovery_->revoking(partitions);
  for (const PartitionOffset& at : partitions) {
    expired_.revoked(at.partition);
    partitions_.erase(at.partition);
  }
  troubles_.revoked(recovery_->more_fails());
  show_assigned();
}

void PartitionSet::suspect_logs() {
  for (auto& [id, p] : partitions_) p.log().suspect();
}

void PartitionSet::offsets_were_reset(Clock::time_point now) {
  // What was fetched before comes first.
  constexpr std::chrono::minutes kJumpsCount{1};
  for (auto& [id, p] : partitions_) p.watch_jumps(now + kJumpsCount);
}

void PartitionSet::caught_up(Clock::time_point now) {
  for (auto& [id, p] : partitions_) p.caught_up(now);
}

void PartitionSet::list(std::vector<PartitionOffset>& out) const {
  out.clear();
  for (const auto& [id, p] : partitions_) out.push_back({id, PartitionOffset::kNone});
}

// --- Reading.

void PartitionSet::tick(Clock::time_point now, Instant wall_now) {
  recovery_->tick(now, wall_now, std::exchange(hurry_, false));
}

void PartitionSet::to_place(std::vector<PartitionOffset>& out) const {
  out.clear();
  for (const auto& [id, p] : partitions_) {
    if (p.phase() == PartitionPhase::kPlacing && !p.held()) out.push_back({id, p.place_at()});
  }
}

void PartitionSet::placed(std::int32_t partition) {
  Partition* const p = find(partition);
  if (p == nullptr || p->phase() != PartitionPhase::kPlacing) return;
  p->moved();
  p->let_read();
}

void PartitionSet::seek_all_again() {
  for (auto& [id, p] : partitions_) p.move_again();
}

bool PartitionSet::take(std::int32_t partition, const Delivered& message) {
  Partition* const p = find(partition);
  if (p == nullptr) return false;
  if (!p->is_read()) {
    // The consumer has moved past the message that is dropped here. Unless it is set back, that
    // message is never read, and yet the offsets behind it are committed.
    p->move_again();
    return false;
  }
  if (message.offset < p->lowest_next(message.offset)) begin_below(*p, message.offset);
  p->take(message);
  return true;
}

// The position is past the log's end: the topic was recreated or truncated.
void PartitionSet::begin_below(Partition& p, std::int64_t offset) {
  metrics_->offset_resets.add();
  if (log_) {
    log_(LogLevel::kError, fmt::format("partition {}: reading continues at offset {}, below the "
                                       "position {}: was the topic recreated?",
                                       p.id(), offset, p.lowest_next(offset)));
  }
  if (p.has_taken()) p.close_range(recovery_->stamp(p));
  p.begin(offset);
  p.log().forget();
  p.forget_jumps();
  p.moved();
  recovery_->fell(p);
}

void PartitionSet::reached_end(std::int32_t partition, std::int64_t end) {
  if (Partition* const p = find(partition)) p->reached_end(end);
}

std::optional<std::int64_t> PartitionSet::awaited(std::int32_t partition) const {
  const Partition* const p = find(partition);
  return p == nullptr ? std::nullopt : p->awaited();
}

void PartitionSet::hold(std::int32_t partition, bool held) {
  if (Partition* const p = find(partition)) p->hold(held);
}

bool PartitionSet::held(std::int32_t partition) const {
  const Partition* const p = find(partition);
  return p != nullptr && p->held();
}

// --- What is done.

void PartitionSet::seal(std::vector<Batch::BatchOffsets>& ranges) {
  ranges.clear();
  for (auto& [id, p] : partitions_) {
    if (p.has_taken()) p.close_range(recovery_->stamp(p));
    p.take_ranges(ranges);
  }
}

void PartitionSet::complete_batch(const Batch& batch) {
  for (const Batch::BatchOffsets& range : batch.ranges) {
    Partition* const p = find(range.partition);
    if (p == nullptr || p->generation() != range.generation) continue;
    const SlotSet slots = recovery_->not_counted(batch, range.partition, range.stamp);
    // First the gap, then complete(): in the other order a mark could be written, or an offset
    // committed, beyond these events while no gap names them, and nothing would read them again.
    if (!slots.empty()) recovery_->give_up(*p, slots, {range.first, range.end});
    p->complete(range);
  }
}

std::uint64_t PartitionSet::open_letter(std::int32_t partition, std::int64_t offset) {
  Partition* const p = find(partition);
  if (p == nullptr) return 0;
  p->open_letter(offset);
  return p->generation();
}

void PartitionSet::close_letter(std::int32_t partition, std::uint64_t generation,
                                std::int64_t offset) {
  Partition* const p = find(partition);
  if (p != nullptr && p->generation() == generation) p->close_letter(offset);
}

bool PartitionSet::current(std::int32_t partition, std::uint64_t generation) const {
  const Partition* const p = find(partition);
  return p != nullptr && p->generation() == generation;
}

std::uint64_t PartitionSet::generation(std::int32_t partition) const {
  const Partition* const p = find(partition);
  return p == nullptr ? 0 : p->generation();
}

std::optional<std::int64_t> PartitionSet::low_water(std::int32_t partition) const {
  const Partition* const p = find(partition);
  return p == nullptr || !p->positioned() ? std::nullopt : p->done_below();
}

void PartitionSet::collect_commits(std::vector<PartitionOffset>& out) {
  out.clear();
  for (auto& [id, p] : partitions_) {
    if (const auto offset = p.offset_to_commit()) out.push_back({id, *offset});
  }
}

void PartitionSet::forget_commits() {
  for (auto& [id, p] : partitions_) p.set_committed(std::nullopt);
}

// --- What partitions wait for.

bool PartitionSet::checking() const {
  bool some_can_be_read = partitions_.empty();
  for (const auto& [id, p] : partitions_) {
    if (p.phase() > PartitionPhase::kConfirming) {
      some_can_be_read = true;
    } else if (!p.check().left_behind) {
      return true;
    }
  }
  return !some_can_be_read || recovery_->waits();
}

bool PartitionSet::failing() const noexcept {
  return troubles_.failing() || recovery_->more_fails();
}

std::optional<StallBook::StallCause> PartitionSet::waits_for(std::int32_t partition) const {
  using Wait = StallBook::Wait;
  const Partition* const p = find(partition);
  if (p == nullptr) return std::nullopt;
  StallBook::StallCause cause;
  switch (p->phase()) {
    case PartitionPhase::kChecking:
      cause = {Wait::kMark, "it waits for Redis to say what its mark is"};
      break;
    case PartitionPhase::kAsking:
      cause = {Wait::kStart, p->check().looks_at_mark
                                 ? "it waits for Kafka to say whether this is the log of its mark"
                                 : "it waits for Kafka to say where its reading begins"};
      break;
    case PartitionPhase::kConfirming:
      cause = {Wait::kMark, "it waits for Redis to confirm its mark"};
      break;
    case PartitionPhase::kPlacing:
      return StallBook::StallCause{
          Wait::kPlace,
          fmt::format("it waits for Kafka's client to go to offset {}", p->place_at())};
    case PartitionPhase::kReading:
      return std::nullopt;
  }
  // In a cluster the marks are the shards', and what is wrong with a shard is said of each
  // partition.
  if ((p->check().failures > 0 || by_slot_) && !trouble().empty()) {
    cause.text += fmt::format(" ({})", trouble().substr(0, trouble().find('\n')));
  }
  return cause;
}

// --- What may be missing.

void PartitionSet::piece_begun(const GapPiece& piece, const Delivered& first) {
  Partition* const p = find(piece.partition);
  if (p == nullptr || !recovery_->filling(piece)) return;
  p->log().read_in_gap({first.offset, first.timestamp_ms, hash_message(first.key, first.payload)},
                       p->next_offset().value_or(0));
}

bool PartitionSet::gaps_known() const {
  return recovery_->knows_gaps() && std::ranges::all_of(partitions_, [](const auto& it) {
           return it.second.phase() > PartitionPhase::kConfirming;
         });
}

}  // namespace fcap::updater
