#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "redis/cluster_shape.h"
#include "redis/node_table.h"
#include "redis/replica_list.h"
#include "redis/slot_map.h"

namespace fcap::redis {

/// What the threads of one Client know of a cluster, and count.
///
/// Thread safety: all functions from any thread.
class ClusterState {
 public:
  /// One node's, over all I/O threads.
  struct alignas(64) NodeCounts {
    std::atomic<std::size_t> operations{0};
    /// Changes with each connection that is made or lost. No two nodes ever have the same one.
    std::atomic<std::uint64_t> epoch{0};
  };

  explicit ClusterState(std::size_t operations_max)
      : operations_max_(operations_max), node_operations_max_(operations_max) {}

  [[nodiscard]] NodeCounts& node(NodeIndex index) noexcept { return (*state_)[index]; }
  [[nodiscard]] const NodeCounts& node(NodeIndex index) const noexcept { return (*state_)[index]; }

  /// How much of queue_operations_max one node may have: a quarter, or more where there are fewer
  /// than four nodes. One that is frozen then leaves the others their share.
  [[nodiscard]] std::size_t node_operations_max() const noexcept {
    return node_operations_max_.load(std::memory_order_relaxed);
  }

  /// A whole shape, which is in the slot map already.
  void take_shape(const ClusterShape& shape);
  [[nodiscard]] ClusterShape shape() const;
  /// Those of the shard of `master`, as far as their endpoints are known.
  [[nodiscard]] std::vector<KnownReplica> replicas_of(const Address& master) const;
  /// Where a host that is named, rather than numbered, was found.
  void take_endpoint(const Address& address, const Endpoint& endpoint);

  /// How many masters the latest shape has, and how many of them are `so(NodeIndex)`.
  template <typename So>
  [[nodiscard]] std::pair<std::size_t, std::size_t> count_masters(So&& so) const {
    const std::lock_guard lock(mutex_);
    return {masters_.size(), std::ranges::count_if(masters_, so)};
  }
  /// Grows with each shape.
  [[nodiscard]] std::uint64_t shapes() const noexcept {
    return shapes_.load(std::memory_order_acquire);
  }

  /// Asks for a new map.
  void refresh_soon() const {
    if (refresh) refresh();
  }

  NodeTable nodes;
  SlotMap slots;
  std::function<void()> refresh;  ///< set before the threads start
  std::atomic<std::uint64_t> moved{0};
  std::atomic<std::uint64_t> asked{0};

 private:
  const std::size_t operations_max_;
  std::atomic<std::size_t> node_operations_max_;
  const std::unique_ptr<std::array<NodeCounts, kClusterNodesMax>> state_ =
      std::make_unique<std::array<NodeCounts, kClusterNodesMax>>();
  mutable std::mutex mutex_;
  ClusterShape shape_;                                   // guarded by mutex_
  std::vector<NodeIndex> masters_;                       // guarded by mutex_
  std::unordered_map<std::string, Endpoint> endpoints_;  // guarded by mutex_
  std::atomic<std::uint64_t> shapes_{0};
};

}  // namespace fcap::redis
