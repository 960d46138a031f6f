// Which partitions wait for Redis or Kafka, what they wait for, and whether the others wait with
// them.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "updater/pipeline/partition_set.h"

namespace fcap::updater {

bool PartitionSet::checking() const noexcept {
  bool some_can_be_read = partitions_.empty();
  for (const auto& [id, p] : partitions_) {
    if (p.phase > PartitionPhase::kConfirming) {
      some_can_be_read = true;
    } else if (!p.left_behind) {
      return true;
    }
  }
  return !some_can_be_read;
}

bool PartitionSet::failing() const noexcept {
  return std::any_of(partitions_.begin(), partitions_.end(), [](const auto& it) {
    return it.second.failures > 0 || it.second.left_behind;
  });
}

std::optional<StallBook::StallCause> PartitionSet::waits_for(std::int32_t partition) const {
  using Wait = StallBook::Wait;
  const auto found = partitions_.find(partition);
  if (found == partitions_.end()) return std::nullopt;
  const Partition& p = found->second;
  StallBook::StallCause cause;
  switch (p.phase) {
    case PartitionPhase::kChecking:
      cause = {Wait::kMark, "it waits for Redis to say what its mark is"};
      break;
    case PartitionPhase::kAsking:
      cause = {Wait::kStart, p.mark_look
                                 ? "it waits for Kafka to say whether this is the log of its mark"
                                 : "it waits for Kafka to say where its reading begins"};
      break;
    case PartitionPhase::kConfirming:
      cause = {Wait::kMark, "it waits for Redis to confirm its mark"};
      break;
    case PartitionPhase::kPlacing:
      return StallBook::StallCause{
          Wait::kPlace, fmt::format("it waits for Kafka's client to go to offset {}", p.place_at)};
    case PartitionPhase::kReading:
      return std::nullopt;
  }
  // In a cluster the marks are the shards', and what is wrong with a shard is said of each
  // partition.
  if ((p.failures > 0 || by_slot()) && !trouble().empty()) {
    cause.text += fmt::format(" ({})", trouble().substr(0, trouble().find('\n')));
  }
  return cause;
}

// The partition's check needs an answer that Kafka has not given. After the deadline the other
// partitions are read without it.
void PartitionSet::await_kafka(std::int32_t id, Partition& p, Clock::time_point now) {
  if (!p.asking_since) p.asking_since = now;
  if (now - *p.asking_since >= options_.deadline) leave_behind(id, p);
}

void PartitionSet::leave_behind(std::int32_t id, Partition& p) {
  const std::string text = fmt::format(
      "partition {}: Kafka cannot say yet where its reading begins; partitions of which it can are "
      "read meanwhile",
      id);
  // An error that Kafka has answered with says more than this text.
  if (p.failures == 0) trouble_ = text;
  if (p.left_behind) return;
  // If many partitions wait together, one line is enough.
  const bool first = std::none_of(partitions_.begin(), partitions_.end(),
                                  [](const auto& it) { return it.second.left_behind; });
  p.left_behind = true;
  if (first) report(LogLevel::kWarning, text);
}

// The partition's check does not wait for Kafka, or no longer does.
void PartitionSet::heard_kafka(Partition& p) {
  p.asking_since.reset();
  p.left_behind = false;
}

// Below which offset events of a partition that is left behind may be missing; nullopt: nothing
// shows that any are. Which of them are missing is not known before Kafka answers.
std::optional<std::int64_t> PartitionSet::doubted_below(std::int32_t id, const Partition& p) const {
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  if (!p.left_behind) return std::nullopt;
  if (p.positioned) return p.tracker.next_offset().value_or(kAll);
  // The partition was taken over. If it has a mark and nothing casts doubt on it, at most what was
  // committed behind that mark is missing, and nothing is stated about so little.
  return p.mark->found() && !doubts_.contains(id) ? std::nullopt : std::optional(kAll);
}

}  // namespace fcap::updater
