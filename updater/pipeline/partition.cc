#include "updater/pipeline/partition.h"

#include <utility>

#include "updater/process/invariant.h"

namespace fcap::updater {

void Partition::begin(std::int64_t offset) {
  generation_ = ++*generations_;
  tracker_ = OffsetTracker(offset);
  log_.restart(offset);
  letters_.clear();
  positioned_ = true;
  open_ = false;
  must_move_ = true;
  began_at_ = offset;
  place_at_ = offset;
  first_message_ = true;
}

void Partition::move_again() {
  if (!positioned_) return;
  must_move_ = true;
  first_message_ = true;
  place_at_ = tracker_.next_offset().value_or(place_at_);
  if (phase_ == PartitionPhase::kReading) phase_ = PartitionPhase::kPlacing;
}

void Partition::hold(bool held) {
  if (held_ == held) return;
  held_ = held;
  move_again();
}

std::optional<std::int64_t> Partition::awaited() const {
  if (held_ || phase_ < PartitionPhase::kPlacing) return std::nullopt;
  if (phase_ == PartitionPhase::kPlacing) return place_at_;
  return open_ ? std::optional(open_end_) : tracker_.next_offset();
}

std::int64_t Partition::lowest_next(std::int64_t if_unknown) const {
  return open_ ? open_end_ : tracker_.next_offset().value_or(if_unknown);
}

void Partition::take(const Delivered& message) {
  const std::int64_t offset = message.offset;
  const std::int64_t expected = lowest_next(offset);
  if (offset > expected && (first_message_ || jumps_until_)) {
    Jump jump{expected, offset};
    if (message.timestamp_ms >= 0) jump.time = instant_from_ms(message.timestamp_ms);
    note_jump(jump);
  }
  first_message_ = false;
  if (!open_) {
    open_ = true;
    open_first_ = offset;
  }
  open_end_ = offset + 1;
  open_last_ = message;
}

// What is asked about one jump may be answered from before the next.
void Partition::note_jump(Jump jump) {
  std::optional<Jump>& noted = jump_ ? later_jump_ : jump_;
  if (noted) jump.from = noted->from;
  noted = jump;
}

Partition::Jump Partition::take_jump() {
  const Jump jump = jump_.value();
  jump_ = std::exchange(later_jump_, std::nullopt);
  return jump;
}

// Compaction and aborted transactions leave offsets that no message has, and the broker itself uses
// an offset for the marker of a transaction's end.
void Partition::reached_end(std::int64_t end) {
  if (!is_read() || open_) return;
  const auto next = tracker_.next_offset();
  if (!next || end <= *next) return;
  if (first_message_ || jumps_until_) note_jump({.from = *next, .to = end});
  first_message_ = false;
  tracker_.complete(tracker_.begin(*next, end));
}

void Partition::close_range(std::uint64_t stamp) {
  if (!open_) return;
  open_ = false;
  log_.delivered({open_last_.offset, open_last_.timestamp_ms,
                  hash_message(open_last_.key, open_last_.payload)});
  ranges_.push_back({.partition = id_,
                     .generation = generation_,
                     .ticket = tracker_.begin(open_first_, open_end_),
                     .first = open_first_,
                     .end = open_end_,
                     .stamp = stamp});
}

void Partition::take_ranges(std::vector<Batch::BatchOffsets>& out) {
  out.insert(out.end(), ranges_.begin(), ranges_.end());
  ranges_.clear();
}

void Partition::complete(const Batch::BatchOffsets& range) {
  if (generation_ == range.generation) tracker_.complete(range.ticket);
}

void Partition::open_letter(std::int64_t offset) {
  must_hold(offset >= tracker_.low_water().value_or(offset),
            "a dead letter is opened before the offsets of its message are done");
  letters_.insert(offset);
}

void Partition::close_letter(std::int64_t offset) {
  if (const auto letter = letters_.find(offset); letter != letters_.end()) letters_.erase(letter);
}

std::optional<std::int64_t> Partition::done_below() const {
  const auto done = tracker_.low_water();
  return !done || letters_.empty() ? done : std::min(*done, *letters_.begin());
}

std::optional<std::int64_t> Partition::offset_to_commit() {
  if (!positioned_ || commit_sent_ == done_below()) return std::nullopt;
  commit_sent_ = done_below();
  return commit_sent_;
}

}  // namespace fcap::updater
