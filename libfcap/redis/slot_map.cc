#include "redis/slot_map.h"

#include <string>
#include <vector>

namespace fcap::redis {

SlotMap::SlotMap() noexcept {
  for (auto& node : nodes_) node.store(kNone, std::memory_order_relaxed);
}

Result<std::size_t> SlotMap::replace(const ClusterShape& shape, NodeTable& nodes) {
  std::vector<NodeIndex> masters;
  for (const ClusterShape::Shard& shard : shape.shards) {
    const auto index = nodes.index_of(shard.master.address);
    if (!index) {
      return Status::error(StatusCode::kUnavailable,
                           "the cluster has had more than " + std::to_string(NodeTable::kNodesMax) +
                               " addresses since this process connected to it: restart the process "
                               "to forget the former ones",
                           true);
    }
    masters.push_back(*index);
  }
  std::size_t changed = 0;
  for (std::size_t i = 0; i < masters.size(); ++i) {
    for (const SlotRange& range : shape.shards[i].slots) {
      for (std::size_t slot = range.first; slot <= range.last; ++slot) {
        if (nodes_[slot].exchange(masters[i], std::memory_order_acq_rel) != masters[i]) ++changed;
      }
    }
  }
  return changed;
}

}  // namespace fcap::redis
