#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "redis/address.h"
#include "redis/cluster_shape.h"

namespace fcap::redis {

/// A small number for each node's address, for tables such as SlotMap.
using NodeIndex = std::uint16_t;

/// The nodes of a cluster that a client has heard of, by address. An address that was given an
/// index keeps it for as long as the table lives, so that an index never means another node: nodes
/// that left the cluster are just the owners of no slot.
///
/// Thread safety: all functions from any thread. index_of() takes a mutex; the others are one
/// atomic load or none.
class NodeTable {
 public:
  static constexpr std::size_t kNodesMax = kClusterNodesMax;

  /// The address's index, a new one if it has none; nothing if it needs a new one and all are
  /// given.
  [[nodiscard]] std::optional<NodeIndex> index_of(const Address& address);
  /// The address of an index that index_of() has given. Never changes.
  [[nodiscard]] const Address& address(NodeIndex index) const noexcept { return *nodes_[index]; }
  /// How many indexes are given: those from 0 on.
  [[nodiscard]] std::size_t size() const noexcept { return size_.load(std::memory_order_acquire); }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, NodeIndex> indexes_;  // guarded by mutex_; by the address' text
  // Each is written once, under mutex_, before its index is known to anyone.
  std::array<std::unique_ptr<const Address>, kNodesMax> nodes_;
  std::atomic<std::size_t> size_{0};
};

}  // namespace fcap::redis
