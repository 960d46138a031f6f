#include "redis/node_table.h"

namespace fcap::redis {

std::optional<NodeIndex> NodeTable::index_of(const Address& address) {
  const std::lock_guard lock(mutex_);
  if (const auto found = indexes_.find(address.text); found != indexes_.end()) return found->second;
  const std::size_t next = size_.load(std::memory_order_relaxed);
  if (next == kNodesMax) return std::nullopt;
  const auto index = static_cast<NodeIndex>(next);
  nodes_[next] = std::make_unique<const Address>(address);
  indexes_.emplace(address.text, index);
  size_.store(next + 1, std::memory_order_release);
  return index;
}

}  // namespace fcap::redis
