#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "redis/cluster_state.h"
#include "redis/link.h"

namespace fcap::redis {

/// One I/O thread's links to the nodes of a cluster: one to each node that owns slots, or to which
/// a redirect has led. A link to a node that is of no use any more rests; it is not destroyed, so
/// that any thread may look at it at any time.
///
/// Thread safety: link() and close_descriptors() from any thread; all else on the I/O thread
/// (shut_down() also after it).
class ClusterLinks {
 public:
  using TimePoint = Link::TimePoint;

  /// `looks`: whether these are the links that query the nodes, one of all threads'.
  ClusterLinks(SharedState& shared, Poller& poller, Resolver& resolver, bool looks);
  ~ClusterLinks();
  ClusterLinks(const ClusterLinks&) = delete;
  ClusterLinks& operator=(const ClusterLinks&) = delete;

  /// Null: none has been made yet.
  [[nodiscard]] Link* link(NodeIndex node) const noexcept {
    return table_[node].load(std::memory_order_acquire);
  }

  void admit(Request& request, TimePoint now) {
    needs_tick_ = true;
    reach(request.node, now).admit(request, now);
  }
  /// The node at `answered` has answered a request with a redirect. Notes what that says.
  /// `request`: the request, if this was its only command, and it is sent on from here; null: its
  /// owner deals with it.
  void redirect(const Address& answered, Request* request, std::string_view error);

  void tick(TimePoint now);
  /// Whether requests came after their node's link was ticked: replies that a failing link has
  /// read lead to more, for links before it too.
  [[nodiscard]] bool needs_tick() const noexcept { return needs_tick_; }
  /// What Link's functions of the same names do, for every link.
  [[nodiscard]] bool holds_back() const noexcept;
  void send_held(TimePoint now);
  void send_early();
  [[nodiscard]] TimePoint next_time() const noexcept;
  void woke(TimePoint asleep_at, TimePoint planned, TimePoint now) noexcept;
  void shut_down();
  /// For a forked child.
  void close_descriptors() noexcept;

 private:
  Link& reach(NodeIndex node, TimePoint now);
  void follow_map(TimePoint now);

  SharedState& shared_;
  ClusterState& cluster_;
  Poller& poller_;
  Resolver& resolver_;
  const bool looks_;
  std::array<std::atomic<Link*>, kClusterNodesMax> table_{};
  std::vector<std::unique_ptr<Link>> made_;
  std::vector<NodeIndex> active_;
  std::uint64_t shapes_ = 0;  // that were followed
  bool needs_tick_ = false;
  TimePoint retire_at_ = TimePoint::max();  // when it is looked for links of no use again
};

}  // namespace fcap::redis
