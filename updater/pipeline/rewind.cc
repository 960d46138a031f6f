#include "updater/pipeline/rewind.h"

#include <algorithm>

namespace fcap::updater {

std::optional<std::int64_t> position_of(const std::optional<Claim>& claim) {
  return claim ? std::optional(claim->position) : std::nullopt;
}

std::string describe(const std::optional<Claim>& claim) {
  if (!claim || claim->gaps.empty()) return describe(position_of(claim));
  return std::to_string(claim->position) + " with " + std::to_string(offsets_in(claim->gaps)) +
         " offsets in gaps";
}

std::string describe(std::optional<std::int64_t> offset) {
  return offset ? std::to_string(*offset) : "none";
}

Claim common_claim(const Claim& one, const Claim& other) {
  Claim both{std::min(one.position, other.position), one.gaps};
  for (const Gap& gap : other.gaps) both.gaps = gaps_with(both.gaps, gap);
  both.gaps = gaps_merged(gaps_below(both.gaps, both.position), MarkValue::kGapsMax);
  return both;
}

Rewind decide_rewind(const MarkCheck& check, const std::optional<Claim>& found) {
  if (!found) {
    // No mark, and none was ever seen on this connection: reading began at the start of retention
    // and nothing says that anything was lost.
    const bool as_expected = !check.confirmed && !check.reconnected;
    return {as_expected ? Rewind::To::kNowhere : Rewind::To::kRetentionStart, {}, false};
  }
  if (check.reconnected && check.attempted == found && check.confirmed != found) {
    // The write may have been executed by the new master, while the events it speaks for were
    // acknowledged by the old one. Only the mark before it is certain.
    if (!check.confirmed) return {Rewind::To::kRetentionStart, {}, true};
    return {Rewind::To::kClaim, common_claim(*check.confirmed, *found), true};
  }
  const bool ours = check.confirmed == found || check.attempted == found;
  if (ours && !check.reconnected) return {};
  return {Rewind::To::kClaim, *found, false};
}

Start decide_start(std::optional<std::int64_t> committed, std::optional<std::int64_t> mark,
                   bool known) {
  if (!mark || (!committed && !known)) return {true, 0};
  return {false, std::min(committed.value_or(*mark), *mark)};
}

std::int64_t mark_to_write(std::int64_t low_water, std::optional<std::int64_t> mark,
                           bool may_fall) {
  if (may_fall || !mark) return low_water;
  return std::max(low_water, *mark);
}

RecoveryPlan plan_recovery(const Claim& certain, std::int64_t done, std::int64_t next,
                           std::optional<std::int64_t> gap_min) {
  if (certain.position >= next) return {next, certain.gaps};
  const bool in_line = !gap_min || next - certain.position < *gap_min || certain.position >= done;
  if (in_line) return {certain.position, certain.gaps};
  const Gaps gaps = gaps_with(certain.gaps, {certain.position, done});
  return {done, gaps_merged(gaps, MarkValue::kGapsMax)};
}

}  // namespace fcap::updater
