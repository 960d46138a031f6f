#include "updater/pipeline/expired_book.h"

#include <fmt/format.h>

namespace fcap::updater {

void ExpiredBook::report(LogLevel level, const std::string& text) const {
  if (log_) log_(level, text);
}

void ExpiredBook::expired_in_gaps(const Gaps& gone, ExpiredEvents events, Instant oldest) {
  // Nothing is lost if no gap lay below the log's start, or if even the first message behind it is
  // older than the retention.
  if (gone.empty() || (events.newest && *events.newest < oldest)) return;
  in_gaps_.insert(events.partition);
  metrics_->offset_resets.add();
  report(LogLevel::kWarning,
         fmt::format("partition {}: {} messages that Redis lacks have expired in Kafka, up to "
                     "offset {}; their events are missing for good, and until the retention has "
                     "passed them no count that reaches back to them is complete",
                     events.partition, offsets_in(gone), gone.back().to));
  found_.push_back(std::move(events));
}

void ExpiredBook::lost(std::int32_t partition, const LogBounds& bounds, const SlotSet& slots) {
  if (!bounds.gone_before) return;
  metrics_->offset_resets.add();
  report(LogLevel::kWarning,
         fmt::format("partition {}: Redis has lost events, and Kafka no longer has the messages "
                     "before offset {}; those of the retention are missing for good, and until it "
                     "has passed them no count that reaches back to them is complete",
                     partition, bounds.log_start));
  ExpiredEvents events{partition, bounds.gone_before, slots};
  if (*bounds.gone_before == Instant::max()) events.newest.reset();
  found_.push_back(std::move(events));
}

void ExpiredBook::jumped(std::int32_t partition, const Partition::Jump& jump) {
  metrics_->offset_resets.add();
  report(LogLevel::kWarning,
         fmt::format("partition {}: offset {} no longer exists; the log begins at offset {}",
                     partition, jump.from, jump.to));
  found_.push_back({partition, jump.time});
}

void ExpiredBook::filled(std::int32_t partition) {
  const bool some_expired = in_gaps_.erase(partition) > 0;
  report(LogLevel::kInfo, fmt::format("partition {}: its gap is filled, {}", partition,
                                      some_expired ? "but for messages that Kafka no longer has"
                                                   : "nothing is missing"));
}

}  // namespace fcap::updater
