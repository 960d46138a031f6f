#include "updater/pipeline/offset_tracker.h"

#include <cassert>

namespace fcap::updater {

OffsetTracker::Ticket OffsetTracker::begin(std::int64_t first, std::int64_t end) {
  assert(end >= first);
  assert(!next_ || first >= *next_);
  if (!low_water_) low_water_ = first;
  next_ = end;
  ranges_.push_back({end, false});
  return oldest_ + ranges_.size() - 1;
}

void OffsetTracker::complete(Ticket ticket) {
  assert(ticket >= oldest_ && ticket - oldest_ < ranges_.size());
  ranges_[ticket - oldest_].done = true;
  while (!ranges_.empty() && ranges_.front().done) {
    low_water_ = ranges_.front().end;
    ranges_.pop_front();
    ++oldest_;
  }
}

}  // namespace fcap::updater
