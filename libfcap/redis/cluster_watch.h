#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
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
/// It asks one node per second at most, whatever the nodes answer: a cluster in a failover has
/// better things to do than to tell each of a thousand clients the same several times. The node is
/// chosen at random among those that a refresh has not tried yet. One that cannot be connected to
/// is passed over at once. One that does not answer, or is not believed (BelievedShape), is left
/// for another one, which is asked a second or so later. The nodes that the options name come last:
/// they only need to exist when the process starts and when every node that was known has gone. A
/// refresh has failed when all of these were tried.
///
/// Thread safety: all functions from any thread, except start() and close_descriptors(). Only the
/// thread asks, changes the shape and calls the callbacks, without a lock held; of the slot map, it
/// is the only one that replaces all of it.
class ClusterWatch {
 public:
  using Report = std::function<void(LogLevel, const std::string&)>;
  using Take = std::function<void(const ClusterShape&)>;

  /// `changed` is called with the shape when it or the map has changed, and after that `refreshed`
  /// (if there is one) whenever a node was believed, also if it said nothing new. `report` gets
  /// failures as warnings, and for information what has changed and that a failure is over.
  /// `options`, `nodes` and `map` must outlive this.
  ClusterWatch(const RedisOptions& options, std::vector<Address> seeds, CredentialsNow credentials,
               NodeTable& nodes, SlotMap& map, Report report, Take changed, Take refreshed = {});
  ~ClusterWatch() { stop(); }
  ClusterWatch(const ClusterWatch&) = delete;
  ClusterWatch& operator=(const ClusterWatch&) = delete;

  [[nodiscard]] Status start();
  /// Ends the thread promptly; nothing is called afterwards. For owners whose callbacks use this.
  void stop() noexcept { thread_.stop(); }
  /// The map was wrong, or a node is lost: asks a node, but not before a second has passed since it
  /// asked one last. Cheap: one atomic load if it has been said already, otherwise one write to an
  /// eventfd.
  void refresh_soon() noexcept;

  /// Null until a node has answered.
  [[nodiscard]] std::shared_ptr<const ClusterShape> shape() const;
  /// How many times a node was asked for its slots.
  [[nodiscard]] std::uint64_t refreshes() const noexcept {
    return refreshes_.load(std::memory_order_relaxed);
  }
  /// Why the latest refresh failed; empty if it did not. Until the first node is believed, what is
  /// wrong with those that were tried so far.
  [[nodiscard]] std::string last_error() const;
  /// For a forked child, where the thread does not exist.
  void close_descriptors() noexcept;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// What has come of a refresh so far.
  enum class Found : std::uint8_t {
    kShape,       ///< a node was believed
    kNothingYet,  ///< there are more nodes to ask, later
    kNothing,     ///< and all were tried
  };
  struct Tried {
    std::set<std::string> nodes;
    std::size_t answers = 0;  ///< how many of them have answered
  };
  /// A refresh that goes on until a node is believed or all were tried.
  struct Refresh {
    Tried known;
    Tried seeds;
    std::string refusals;
  };

  void run();
  /// False: it must stop.
  [[nodiscard]] bool wait_until_due();
  [[nodiscard]] bool is_stopping() const noexcept;
  void refresh();
  [[nodiscard]] Found ask_one_of(std::vector<Address> nodes, bool are_seeds);
  [[nodiscard]] Result<ClusterView> ask(const Address& node);
  [[nodiscard]] Status accept(ClusterView view, const Address& node, bool from_seed);
  void tell_change(std::size_t slots, const Address& node);
  [[nodiscard]] std::vector<Address> known_nodes() const;
  void shuffle(std::vector<Address>& nodes);
  /// What it was before.
  std::string set_last_error(std::string text);

  const RedisOptions& options_;
  const std::vector<Address> seeds_;
  NodeTable& nodes_;
  SlotMap& map_;
  const Report report_;
  const Take changed_;
  const Take refreshed_;
  std::atomic<std::uint64_t> refreshes_{0};
  std::atomic<bool> wanted_{false};

  mutable std::mutex mutex_;
  std::shared_ptr<const ClusterShape> shape_;  // guarded by mutex_
  std::string last_error_;                     // guarded by mutex_

  base::BackgroundThread thread_;
  // What follows is the thread's alone.
  base::Jitter jitter_;
  RefreshSchedule schedule_;
  Refresh refresh_;
  std::optional<TimePoint> asked_at_;  // when the one node of this turn was asked
  BelievedShape believed_;
  NodeSession session_;
  NameLookups names_;
};

}  // namespace fcap::redis
