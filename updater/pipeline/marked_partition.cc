#include "updater/pipeline/marked_partition.h"

#include <utility>

namespace fcap::updater {

std::optional<Claim> MarkedPartition::claim_of(const Mark::Value& value) const {
  if (!value) return std::nullopt;
  if (reads_in_line) return Claim{value->complete_below(), {}};
  return Claim{value->position, value->gaps};
}

bool MarkedPartition::found_ours() const {
  return mark->found() == mark->confirmed() || mark->found() == mark->attempted();
}

void MarkedPartition::reading_begins(std::int64_t offset, std::uint64_t new_gaps_generation) {
  gaps_generation = new_gaps_generation;
  gaps = gaps_below(gaps, offset);
  sure_from = offset;
}

void MarkedPartition::count_done(const Partition& p) {
  if (gaps.empty()) return;
  gaps = gaps_without(gaps, {sure_from, p.done_below().value_or(sure_from)});
}

void MarkedPartition::know_by_found(Partition& p, std::int64_t start) const {
  const Mark::Value& found = mark->found();
  const bool ours = found_ours();
  const auto found_again = !ours && verdict ? verdict->newest : std::nullopt;
  if (ours || found_again) {
    p.log().know(found->log, start, found_again);
  } else {
    p.log().assume(found->log, start);
  }
}

Gaps MarkedPartition::gaps_to_mark(std::int64_t position) const {
  return gaps_merged(gaps_below(gaps, position), MarkValue::kGapsMax);
}

bool MarkedPartition::mark_says_all() const {
  if (gaps.empty()) return true;
  const std::optional<Claim> claim = claimed();
  return claim && gaps_covered(gaps_below(gaps, claim->position), claim->gaps);
}

bool MarkedPartition::mark_moved(std::int64_t position) const {
  const Mark::Value& written = mark->confirmed();
  if (reads_in_line) return position_of(claimed()) != position;
  if (!written || written->position != position) return true;
  return !(gaps.empty() && written->gaps.empty()) && gaps_to_mark(position) != written->gaps;
}

MarkValue MarkedPartition::value_of_mark(Partition& p, std::int64_t position) const {
  const Mark::Value& confirmed = mark->confirmed();
  Gaps named = gaps_to_mark(position);
  // After a restart below it, the mark is ahead of what is done: only its gaps may change.
  if (confirmed && position > p.done_below() && confirmed->position == position) {
    return {.position = position, .log = confirmed->log, .gaps = std::move(named)};
  }
  return {.position = position, .log = p.log().identity(position), .gaps = std::move(named)};
}

}  // namespace fcap::updater
