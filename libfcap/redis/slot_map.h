#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include <fcap/status.h>

#include "redis/cluster_shape.h"
#include "redis/node_table.h"

namespace fcap::redis {

/// Which node each slot's requests are sent to. A wrong entry costs a redirect, and never an answer
/// from the wrong node: nodes refuse requests about slots that they do not serve.
///
/// Thread safety: all functions from any thread. Each slot stands on its own: while replace() is
/// under way, a reader sees the former owner or the new one.
class SlotMap {
 public:
  /// No owner is known.
  static constexpr NodeIndex kNone = std::numeric_limits<NodeIndex>::max();

  SlotMap() noexcept;
  SlotMap(const SlotMap&) = delete;
  SlotMap& operator=(const SlotMap&) = delete;

  /// `slot` must be below kSlotCount. One atomic load.
  [[nodiscard]] NodeIndex node_of(std::uint16_t slot) const noexcept {
    // Acquire, so that the index' address can be read; on x86 it costs what a relaxed load does.
    return nodes_[slot].load(std::memory_order_acquire);
  }

  /// Takes the masters of a whole shape, whose nodes are given indexes; says how many slots changed
  /// their owners. A slot that has no owner in `shape` keeps the node that it had, because no other
  /// node could say better where its keys are. Fails, without a change, if `nodes` is full.
  [[nodiscard]] Result<std::size_t> replace(const ClusterShape& shape, NodeTable& nodes);
  /// What one MOVED has said.
  void correct(std::uint16_t slot, NodeIndex node) noexcept {
    nodes_[slot].store(node, std::memory_order_release);
  }

 private:
  std::array<std::atomic<NodeIndex>, kSlotCount> nodes_;
};

}  // namespace fcap::redis
