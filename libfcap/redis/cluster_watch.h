#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/redis_options.h>
#include <fcap/status.h>

#include "base/background_thread.h"
#include "base/backoff.h"
#include "redis/believed_shape.h"
#include "redis/name_lookups.h"
#include "redis/node_session.h"
#include "redis/node_table.h"
#include "redis/refresh_schedule.h"
#include "redis/slot_map.h"

namespace fcap::redis {

/// Keeps a SlotMap as a cluster is, by asking its nodes on a thread of its own: at first, every
/// minute, and when refresh_soon() says that the map was wrong.
///
/// A refresh asks one node, chosen at random, and others only if that one is not reached or not
/// believed (BelievedShape). The nodes that the options name come last: they only need to exist
/// when the process starts and when every node that was known has gone.
///
/// Thread safety: all functions from any thread, except start() and close_descriptors(). Only the
/// thread asks, changes the shape and calls `report` and `changed`, without a lock held; of the
/// slot map, it is the only one that replaces all of it.
class ClusterWatch {
 public:
  using Report = std::function<void(LogLevel, const std::string&)>;
  using Changed = std::function<void(const ClusterShape&)>;

  /// `changed` is called with the shape when it or the map has changed; `report` gets failures as
  /// warnings, and for information what has changed and that a failure is over. `options`, `nodes`
  /// and `map` must outlive this.
  ClusterWatch(const RedisOptions& options, std::vector<Address> seeds, CredentialsNow credentials,
               NodeTable& nodes, SlotMap& map, Report report, Changed changed);
  ~ClusterWatch() { stop(); }
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

  [[nodiscard]] Status start();
  /// Ends the thread promptly; nothing is called afterwards. For owners whose callbacks use this.
  void stop() noexcept { thread_.stop(); }
  /// The map was wrong, or a node is lost: asks again, but not before a second has passed since it
  /// asked last. Cheap: one atomic load if it has been said already, otherwise one write to an
  /// eventfd.
  void refresh_soon() noexcept;

  /// Null until a node has answered.
  [[nodiscard]] std::shared_ptr<const ClusterShape> shape() const;
  /// How many times a node was asked for its slots.
  [[nodiscard]] std::uint64_t refreshes() const noexcept {
    return refreshes_.load(std::memory_order_relaxed);
  }
  /// Why the latest refresh failed; empty if it did not.
  [[nodiscard]] std::string last_error() const;
  /// For a forked child, where the thread does not exist.
  void close_descriptors() noexcept;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Refusals;

  void run();
  /// False: it must stop.
  [[nodiscard]] bool wait_until_due();
  [[nodiscard]] bool is_stopping() const noexcept;
  void refresh();
  [[nodiscard]] bool refresh_from(std::vector<Address> nodes, bool are_seeds, Refusals& refusals);
  [[nodiscard]] Result<ClusterView> ask(const Address& node);
  [[nodiscard]] Status take(ClusterView view, const Address& node, bool from_seed);
  [[nodiscard]] std::vector<Address> known_nodes() const;
  void shuffle(std::vector<Address>& nodes);
  /// What it was before.
  std::string set_last_error(std::string text);

  const RedisOptions& options_;
  const std::vector<Address> seeds_;
  NodeTable& nodes_;
  SlotMap& map_;
  const Report report_;
  const Changed changed_;
  std::atomic<std::uint64_t> refreshes_{0};
  std::atomic<bool> wanted_{false};

  mutable std::mutex mutex_;
  std::shared_ptr<const ClusterShape> shape_;  // guarded by mutex_
  std::string last_error_;                     // guarded by mutex_

  base::BackgroundThread thread_;
  // Of the thread.
  base::Jitter jitter_;
  RefreshSchedule schedule_;
  BelievedShape believed_;
  NodeSession session_;
  NameLookups names_;
};

}  // namespace fcap::redis
