#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <fcap/status.h>

#include "redis/cluster_shape.h"
#include "redis/reply.h"

namespace fcap::redis {

/// What one node has said about its cluster.
struct ClusterView {
  ClusterShape shape;
  bool serves = false;      ///< cluster_state is ok: it takes requests
  std::uint64_t epoch = 0;  ///< cluster_current_epoch
};

/// Reads the reply to CLUSTER INFO into `view`. Free of I/O.
[[nodiscard]] Status read_cluster_info(const Reply& reply, ClusterView& view);

/// The shape of the cluster that is acted on, and who may change it: nodes differ in what they
/// know, above all during a failover and when the network is divided. Free of clocks and I/O.
///
/// Thread safety: none.
class BelievedShape {
 public:
  /// Accepts what a node says, or fails with the reason why the node is not believed. `from_seed`:
  /// the node's address is one of those in the options.
  [[nodiscard]] Status accept(ClusterView view, bool from_seed);

  /// Null until a node is believed.
  [[nodiscard]] const std::shared_ptr<const ClusterShape>& shape() const noexcept { return shape_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }

 private:
  [[nodiscard]] bool knows_any_of(const ClusterShape& shape) const;

  std::shared_ptr<const ClusterShape> shape_;
  std::uint64_t epoch_ = 0;
  bool serves_ = false;
};

}  // namespace fcap::redis
