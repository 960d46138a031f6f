#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/health.h>

#include "redis/client.h"
#include "redis/cluster_state.h"
#include "redis/cluster_watch.h"
#include "redis/io_thread.h"
#include "redis/shared_state.h"

namespace fcap::redis {

/// What a Client has only with a cluster: the slot map, and requests that go by it.
///
/// Thread safety: all functions from any thread, except start() and close_descriptors().
class ClusterClient {
 public:
  using Threads = std::vector<std::unique_ptr<IoThread>>;

  /// `threads` are made after this, and started after start().
  ClusterClient(SharedState& shared, Resolver& resolver, const Threads& threads,
                std::vector<Address> seeds);
  ~ClusterClient();
  ClusterClient(const ClusterClient&) = delete;
  ClusterClient& operator=(const ClusterClient&) = delete;

  [[nodiscard]] Status start();
  /// After the threads have ended.
  void stop() { watch_.reset(); }
  /// For a forked child.
  void close_descriptors() noexcept;

  /// `thread` is that of the request's slot.
  void submit(IoThread& thread, Request& request) noexcept;

  /// As Client::read().
  [[nodiscard]] bool read(std::string_view key, std::chrono::steady_clock::time_point deadline,
                          StoreCompletion& done) noexcept;

  [[nodiscard]] std::size_t route_of(std::uint16_t slot) const noexcept {
    return state_.slots.node_of(slot) * threads_.size() + slot % threads_.size();
  }
  [[nodiscard]] std::uint64_t epoch(std::uint16_t slot) const noexcept;
  /// As Client::node_at() and Client::node_epoch().
  [[nodiscard]] std::optional<NodeIndex> node_at(std::string_view address);
  [[nodiscard]] std::uint64_t epoch_of_node(NodeIndex node) const noexcept;
  /// Whether each thread is connected to each master of the latest map.
  [[nodiscard]] bool connected() const noexcept;
  [[nodiscard]] std::vector<ClusterShard> shards();
  void add_health(StoreHealth& health) const;

 private:
  [[nodiscard]] bool is_ready(NodeIndex node) const noexcept;

  void take_shape(const ClusterShape& shape);
  void look_up_replicas(const ClusterShape& shape);

  SharedState& shared_;
  Resolver& resolver_;
  const Threads& threads_;
  ClusterState state_;
  std::mutex lookups_mutex_;
  std::set<std::string> lookups_;  // of replicas, under way; guarded by lookups_mutex_
  std::unique_ptr<ClusterWatch> watch_;
};

}  // namespace fcap::redis
