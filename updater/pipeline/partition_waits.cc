// Which partitions wait, for Redis or for Kafka, what for, and whether the others
// wait with them.
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
  // In a cluster, those of shards are all partitions'.
  if ((p.failures > 0 || by_slot()) && !trouble().empty()) {
    cause.text += fmt::format(" ({})", trouble().substr(0, trouble().find('\n')));
  }
  return cause;
}

// Its check needs something that Kafka has not said.
void PartitionSet::await_kafka(std::int32_t id, Partition& p, Clock::time_point now) {
  if (!p.asking_since) p.asking_since = now;
  if (now - *p.asking_since >= options_.deadline) leave_behind(id, p);
}

void PartitionSet::leave_behind(std::int32_t id, Partition& p) {
  const std::string text = fmt::format(
      "partition {}: Kafka cannot say yet where its reading begins; partitions of which it can are "
      "read meanwhile",
      id);
  // What Kafka has answered says more.
  if (p.failures == 0) trouble_ = text;
  if (p.left_behind) return;
  // If many partitions wait together, one line is enough.
  const bool first = std::none_of(partitions_.begin(), partitions_.end(),
                                  [](const auto& it) { return it.second.left_behind; });
  p.left_behind = true;
  if (first) report(LogLevel::kWarning, text);
}

// It does not wait for Kafka, or not any more.
void PartitionSet::heard_kafka(Partition& p) {
  p.asking_since.reset();
  p.left_behind = false;
}

// Where offsets end that may be missing in a partition that is left behind, if there is a sign that
// some are. How many they are is not known before Kafka answers.
std::optional<std::int64_t> PartitionSet::doubted_below(std::int32_t id, const Partition& p) const {
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  if (!p.left_behind) return std::nullopt;
  if (p.positioned) return p.tracker.next_offset().value_or(kAll);
  // Taken over. If it has a mark that counts, only what was committed behind that mark can be
  // missing.
  return p.mark->found() && !doubts_.contains(id) ? std::nullopt : std::optional(kAll);
}

}  // namespace fcap::updater
