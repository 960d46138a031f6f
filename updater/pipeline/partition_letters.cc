// What waits for dead letters in a partition.
#include "updater/pipeline/partition_set.h"
#include "updater/process/invariant.h"

namespace fcap::updater {

std::uint64_t PartitionSet::open_letter(std::int32_t partition, std::int64_t offset) {
  Partition* p = find(partition);
  if (p == nullptr) return 0;
  must_hold(offset >= p->tracker.low_water().value_or(offset),
            "a dead letter is opened before the offsets of its message are done");
  p->letters.insert(offset);
  return p->generation;
}

void PartitionSet::close_letter(std::int32_t partition, std::uint64_t generation,
                                std::int64_t offset) {
  Partition* p = find(partition);
  if (p == nullptr || p->generation != generation) return;
  if (const auto letter = p->letters.find(offset); letter != p->letters.end()) {
    p->letters.erase(letter);
  }
}

bool PartitionSet::current(std::int32_t partition, std::uint64_t generation) const {
  const auto found = partitions_.find(partition);
  return found != partitions_.end() && found->second.generation == generation;
}

void PartitionSet::hold(std::int32_t partition, bool held) {
  Partition* p = find(partition);
  if (p == nullptr || p->held == held) return;
  p->held = held;
  move_again(*p);
}

bool PartitionSet::held(std::int32_t partition) const {
  const auto found = partitions_.find(partition);
  return found != partitions_.end() && found->second.held;
}

}  // namespace fcap::updater
