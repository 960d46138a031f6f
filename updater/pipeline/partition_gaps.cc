// What may be missing of a partition, which part of it is read again in line, and what is a gap.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "updater/pipeline/partition_set.h"

namespace fcap::updater {
namespace {

// Why a partition is read again, for people.
std::string why_again(const std::optional<Claim>& found, const std::optional<Claim>& written) {
  if (!written) return "Redis was reconnected before it had confirmed a mark";
  if (!found) {
    return fmt::format("Redis has lost data (no mark where offset {} was written)",
                       describe(written));
  }
  if (found->position < written->position) {
    return fmt::format("Redis has lost data (a mark of offset {} where offset {} was written)",
                       describe(found), describe(written));
  }
  return fmt::format("Redis was reconnected and may have lost data (its mark: offset {})",
                     describe(found));
}

std::optional<std::int64_t> end_of(const Gaps& gaps) {
  return gaps.empty() ? std::nullopt : std::optional(gaps.back().to);
}

}  // namespace

std::optional<Claim> PartitionSet::claim_of(const Mark::Value& mark) const {
  if (!mark) return std::nullopt;
  if (!options_.gap_min) return Claim{mark->complete_below(), {}};
  return Claim{mark->position, mark->gaps};
}

void PartitionSet::recover(std::int32_t id, Partition& p, const Rewind& rewind) {
  const std::int64_t next = p.tracker.next_offset().value_or(rewind.certain.position);
  const std::int64_t done = p.done_below().value_or(next);
  const Recovery plan = plan_recovery(rewind.certain, done, next, options_.gap_min);
  p.mark_may_fall = p.mark_may_fall || rewind.lower_mark;
  const bool is_claim = rewind.to == Rewind::To::kClaim;
  // The next mark replaces this one, and must name messages that identify the log at least as well.
  if (is_claim && rewind.certain.position >= next) know_by_found(p, next);
  const bool all_claimed = rewind.certain.position >= next && plan.gaps.empty();
  if (is_claim && all_claimed) {
    p.gaps_generation = ++generations_;
    p.gaps.clear();
    p.sure_from = next;
    return;
  }
  if (p.mark->found() != p.mark->confirmed()) metrics_->mark_losses.add();
  if (!p.mark->found() && p.mark->confirmed()) marks_gone_ = SlotSet::all();
  report_recovery(id, p, plan, next);
  if (is_claim && rewind.certain.position >= next) {
    // Offsets that are being processed are in no gap, or above sure_from.
    p.gaps_generation = ++generations_;
    p.sure_from = next;
  } else {
    metrics_->rewinds.add();
    metrics_->rewound_messages.add(static_cast<std::uint64_t>(next - plan.read_from));
    place(p, plan.read_from);
    if (is_claim) know_by_found(p, plan.read_from);
  }
  p.gaps = plan.gaps;
}

void PartitionSet::know_by_found(Partition& p, std::int64_t start) {
  const Mark::Value& found = p.mark->found();
  const bool ours = found == p.mark->confirmed() || found == p.mark->attempted();
  const auto found_again = !ours && p.mark_verdict ? p.mark_verdict->newest : std::nullopt;
  if (ours || found_again) {
    p.log.know(found->log, start, found_again);
  } else {
    p.log.assume(found->log, start);
  }
}

void PartitionSet::report_recovery(std::int32_t id, const Partition& p, const Recovery& plan,
                                   std::int64_t next) const {
  std::string text =
      fmt::format("{}: partition {} is read again from {}, {} messages",
                  why_again(claim_of(p.mark->found()), claim_of(p.mark->confirmed())), id,
                  plan.read_from, next - plan.read_from);
  if (!plan.gaps.empty()) {
    fmt::format_to(std::back_inserter(text),
                   "; meanwhile {} offsets before it, from {} on, are read again, the newest first",
                   offsets_in(plan.gaps), plan.gaps.front().from);
  }
  report(LogLevel::kWarning, text);
}

void PartitionSet::count_done(Partition& p) {
  if (p.gaps.empty()) return;
  p.gaps = gaps_without(p.gaps, {p.sure_from, p.done_below().value_or(p.sure_from)});
}

Gaps PartitionSet::gaps_to_mark(const Partition& p, std::int64_t position) {
  return gaps_merged(gaps_below(p.gaps, position), MarkValue::kGapsMax);
}

bool PartitionSet::mark_says_all(const Partition& p) const {
  if (p.gaps.empty()) return true;
  const std::optional<Claim> claim = claim_of(p.mark->confirmed());
  return claim && gaps_covered(gaps_below(p.gaps, claim->position), claim->gaps);
}

bool PartitionSet::mark_moved(const Partition& p, std::int64_t position) const {
  const Mark::Value& written = p.mark->confirmed();
  if (!options_.gap_min) return position_of(claim_of(written)) != position;
  if (!written || written->position != position) return true;
  return !(p.gaps.empty() && written->gaps.empty()) && gaps_to_mark(p, position) != written->gaps;
}

void PartitionSet::list_pieces(std::vector<GapPiece>& out) const {
  out.clear();
  const std::uint64_t epoch = epoch_();
  for (const auto& [id, p] : partitions_) {
    if (p.phase < PartitionPhase::kPlacing || p.gaps.empty() || p.epoch != epoch) continue;
    const Gaps below = gaps_below(p.gaps, p.sure_from);
    if (below.empty()) continue;
    const Gap& newest = below.back();
    out.push_back({.partition = id,
                   .gaps_generation = p.gaps_generation,
                   .epoch = epoch,
                   .from = std::max(newest.from, newest.to - options_.piece_offsets_max),
                   .to = newest.to});
  }
}

bool PartitionSet::filling(const GapPiece& piece) const {
  const auto found = partitions_.find(piece.partition);
  return found != partitions_.end() && found->second.gaps_generation == piece.gaps_generation &&
         piece.epoch == epoch_();
}

void PartitionSet::piece_begun(const GapPiece& piece, const Delivered& first) {
  Partition* p = find(piece.partition);
  if (p == nullptr || p->gaps_generation != piece.gaps_generation) return;
  p->log.read_in_gap({first.offset, first.timestamp_ms, hash_message(first.key, first.payload)},
                     p->tracker.next_offset().value_or(0));
}

bool PartitionSet::piece_done(const GapPiece& piece) {
  Partition* p = find(piece.partition);
  if (p == nullptr || p->gaps_generation != piece.gaps_generation) return false;
  // Another connection may lead to another server, which lacks what was acknowledged.
  if (p->epoch != piece.epoch || epoch_() != piece.epoch) return false;
  p->gaps = gaps_without(p->gaps, {piece.from, piece.to});
  if (p->gaps.empty()) say_filled(piece.partition, *p);
  return true;
}

void PartitionSet::say_filled(std::int32_t id, Partition& p) const {
  const bool some_expired = std::exchange(p.some_expired, false);
  report(LogLevel::kInfo, fmt::format("partition {}: its gap is filled, {}", id,
                                      some_expired ? "but for messages that Kafka no longer has"
                                                   : "nothing is missing"));
}

void PartitionSet::expire(const GapPiece& piece, std::int64_t log_start,
                          std::optional<Instant> newest, Instant oldest) {
  Partition* p = find(piece.partition);
  if (p == nullptr || p->gaps_generation != piece.gaps_generation) return;
  // What is missing above sure_from is read in line, not by the filler.
  const std::int64_t below = std::min(log_start, p->sure_from);
  const Gaps gone = gaps_below(p->gaps, below);
  p->gaps = gaps_without(p->gaps, {0, below});
  note_expired(piece.partition, *p, gone, {piece.partition, newest}, oldest);
}

void PartitionSet::note_expired(std::int32_t id, Partition& p, const Gaps& gone,
                                ExpiredEvents events, Instant oldest) {
  // Nothing is lost if no gap lay below the log's start, or if even the first message behind it is
  // older than the retention.
  if (gone.empty() || (events.newest && *events.newest < oldest)) return;
  p.some_expired = true;
  metrics_->offset_resets.add();
  report(LogLevel::kWarning,
         fmt::format("partition {}: {} messages that Redis lacks have expired in Kafka, up to "
                     "offset {}; their events are missing for good, and until the retention has "
                     "passed them no count that reaches back to them is complete",
                     id, offsets_in(gone), gone.back().to));
  expired_.push_back(std::move(events));
}

void PartitionSet::note_log_start(std::int32_t id, const LogBounds& bounds, const SlotSet& slots) {
  if (!bounds.gone_before) return;
  metrics_->offset_resets.add();
  report(LogLevel::kWarning,
         fmt::format("partition {}: Redis has lost events, and Kafka no longer has the messages "
                     "before offset {}; those of the retention are missing for good, and until it "
                     "has passed them no count that reaches back to them is complete",
                     id, bounds.log_start));
  ExpiredEvents events{id, bounds.gone_before, slots};
  if (*bounds.gone_before == Instant::max()) events.newest.reset();
  expired_.push_back(std::move(events));
}

std::uint64_t PartitionSet::generation(std::int32_t partition) const {
  const auto found = partitions_.find(partition);
  return found == partitions_.end() ? 0 : found->second.generation;
}

bool PartitionSet::compared_here(const Partition& p) const {
  return p.phase >= PartitionPhase::kConfirming && p.epoch == epoch_();
}

void PartitionSet::list_gap_ends(std::vector<GapEnd>& out) const {
  out.clear();
  for (const auto& [id, p] : partitions_) {
    const auto doubted = doubted_below(id, p);
    if (!compared_here(p)) {
      // The partition is left out, so what Redis states of it stays. That came with the data set
      // that is there now; what was found in a former one says nothing of it.
      if (doubted) out.push_back({id, std::max(doubted, end_of(p.gaps))});
    } else if (!p.gaps.empty() || p.phase >= PartitionPhase::kPlacing) {
      out.push_back({id, end_of(p.gaps)});
    }
  }
}

void PartitionSet::list_compared(std::map<std::int32_t, Clock::time_point>& out) const {
  for (const auto& [id, p] : partitions_) {
    if (compared_here(p)) out[id] = p.compared;
  }
}

bool PartitionSet::gaps_known() const noexcept {
  return std::all_of(partitions_.begin(), partitions_.end(),
                     [](const auto& it) { return it.second.phase > PartitionPhase::kConfirming; });
}

std::int64_t PartitionSet::offsets_missing() const noexcept {
  std::int64_t sum = 0;
  for (const auto& [id, p] : partitions_) sum += offsets_in(p.gaps);
  return sum;
}

}  // namespace fcap::updater
