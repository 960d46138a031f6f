#include "updater/pipeline/gap_times.h"

#include <algorithm>
#include <utility>

namespace fcap::updater {

void GapTimes::look(std::span<const GapEnd> partitions, Instant latest) {
  std::map<std::int32_t, KnownEnd> known;
  for (const GapEnd& gap : partitions) {
    KnownEnd& now = known[gap.partition];
    now = {gap.to, latest, gap.slots};
    const auto before = partitions_.find(gap.partition);
    // A gap that reaches further than before, or concerns more users, is a new one.
    const bool went_on = gap.to && before != partitions_.end() && before->second.to &&
                         *gap.to <= *before->second.to && before->second.slots.covers(gap.slots);
    if (went_on) now.before = before->second.before;
  }
  partitions_ = std::move(known);
}

void GapTimes::filled(std::int32_t partition, std::int64_t from, std::optional<Instant> newest) {
  const auto found = partitions_.find(partition);
  if (found == partitions_.end() || !found->second.to) return;
  KnownEnd& known = found->second;
  known.to = std::min(*known.to, from);
  if (newest) known.before = std::min(known.before, *newest + future_allowed_);
}

void GapTimes::expired(std::span<const ExpiredEvents> found, Instant latest) {
  for (const ExpiredEvents& events : found) {
    Instant before = latest;
    if (events.newest) {
      before = std::min(before, *events.newest + future_allowed_);
    } else if (const auto gap = partitions_.find(events.partition);
               gap != partitions_.end() && gap->second.to) {
      // Gaps are filled the newest first.
      before = gap->second.before;
    }
    if (!expired_) expired_.emplace(before, SlotSet{});
    expired_->before = std::max(expired_->before, before);
    expired_->slots |= events.slots;
  }
}

OpenGaps GapTimes::open_gaps() const {
  OpenGaps open{.expired = expired_};
  for (const auto& [partition, known] : partitions_) {
    auto& events = open.missing_before[partition];
    if (known.to) events.emplace(known.before, known.slots);
  }
  return open;
}

}  // namespace fcap::updater
