#include "redis/cluster_state.h"

#include <algorithm>
#include <utility>

#include "redis/resolver.h"

namespace fcap::redis {
namespace {

constexpr std::size_t kSharesMax = 4;

}  // namespace

void ClusterState::take_shape(const ClusterShape& shape) {
  std::vector<NodeIndex> masters;
  for (const ClusterShape::Shard& shard : shape.shards) {
    if (shard.slots.empty()) continue;
    if (const auto index = nodes.index_of(shard.master.address)) masters.push_back(*index);
  }
  const std::size_t shares = std::clamp<std::size_t>(masters.size(), 1, kSharesMax);
  node_operations_max_.store(std::max<std::size_t>(operations_max_ / shares, 1),
                             std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  shape_ = shape;
  masters_ = std::move(masters);
  shapes_.fetch_add(1, std::memory_order_release);
}

std::vector<KnownReplica> ClusterState::replicas_of(const Address& master) const {
  std::vector<KnownReplica> replicas;
  const std::lock_guard lock(mutex_);
  for (const ClusterShape::Shard& shard : shape_.shards) {
    if (shard.master.address.text != master.text) continue;
    for (const ClusterNode& node : shard.replicas) {
      const Endpoints numeric = numeric_endpoints(node.address);
      if (!numeric.empty()) {
        replicas.push_back({numeric.front(), node.address.host});
      } else if (const auto found = endpoints_.find(node.address.text); found != endpoints_.end()) {
        replicas.push_back({found->second, node.address.host});
      }
    }
  }
  return replicas;
}

void ClusterState::take_endpoint(const Address& address, const Endpoint& endpoint) {
  const std::lock_guard lock(mutex_);
  endpoints_[address.text] = endpoint;
}

ClusterShape ClusterState::shape() const {
  const std::lock_guard lock(mutex_);
  return shape_;
}

}  // namespace fcap::redis
