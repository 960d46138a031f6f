// What a partition does about offsets that no message has. Compaction and aborted transactions
// leave such holes, and the broker itself uses an offset for the marker of a transaction's end.
#include <utility>

#include <fmt/format.h>

#include "updater/pipeline/partition_set.h"

namespace fcap::updater {

void PartitionSet::reached_end(std::int32_t partition, std::int64_t end) {
  Partition* p = find(partition);
  if (p == nullptr || p->phase != PartitionPhase::kReading || p->held || p->open) return;
  const auto next = p->tracker.next_offset();
  if (!next || end <= *next) return;
  if (p->first_message) p->jump = Jump{.from = *next, .to = end};
  p->first_message = false;
  p->tracker.complete(p->tracker.begin(*next, end));
}

std::optional<std::int64_t> PartitionSet::awaited(std::int32_t partition) const {
  const auto found = partitions_.find(partition);
  if (found == partitions_.end()) return std::nullopt;
  const Partition& p = found->second;
  if (p.held || p.phase < PartitionPhase::kPlacing) return std::nullopt;
  if (p.phase == PartitionPhase::kPlacing) return p.place_at;
  return p.open ? std::optional(p.open_end) : p.tracker.next_offset();
}

void PartitionSet::judge_jump(std::int32_t id, Partition& p, Clock::time_point now) {
  constexpr std::chrono::milliseconds kAskAgain{1000};
  if (now < p.jump->due) return;
  const auto answer = answer_of(id, p);
  if (!answer) return;
  if (!answer->ok()) {
    // Without an answer nothing is said: a statement that messages have expired stands until the
    // retention has passed them, so it must not be made by mistake.
    p.jump->due = now + kAskAgain;
    return;
  }
  const Jump jump = *std::exchange(p.jump, std::nullopt);
  // If the log does not begin later, no message at these offsets has been deleted.
  if (answer->value().log_start <= jump.from) return;
  metrics_->offset_resets.add();
  report(LogLevel::kWarning,
         fmt::format("partition {}: offset {} no longer exists; the log begins at offset {}", id,
                     jump.from, jump.to));
  expired_.push_back({id, jump.time});
}

}  // namespace fcap::updater
