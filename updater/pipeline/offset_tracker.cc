#include "updater/pipeline/offset_tracker.h"

#include "updater/process/invariant.h"

namespace fcap::updater {

OffsetTracker::Ticket OffsetTracker::begin(std::int64_t first, std::int64_t end) {
  must_hold(end >= first && (!next_ || first >= *next_),
            "the offsets of a partition are taken in ascending order");
  if (!low_water_) low_water_ = first;
  next_ = end;
  ranges_.push_back({end, false});
  return oldest_ + ranges_.size() - 1;
}

void OffsetTracker::complete(Ticket ticket) {
  must_hold(
      ticket >= oldest_ && ticket - oldest_ < ranges_.size() && !ranges_[ticket - oldest_].done,
      "a range of offsets is begun before it is complete, and complete once");
  ranges_[ticket - oldest_].done = true;
  while (!ranges_.empty() && ranges_.front().done) {
    low_water_ = ranges_.front().end;
    ranges_.pop_front();
    ++oldest_;
  }
}

}  // namespace fcap::updater
