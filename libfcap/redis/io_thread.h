#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <thread>

#include <sys/epoll.h>

#include "redis/cluster_links.h"
#include "redis/link.h"
#include "redis/submission_queue.h"

namespace fcap::redis {

/// One thread that moves requests and replies: it takes submitted requests, writes them, and sleeps
/// in epoll when there is nothing to do. Only then does it need to be woken.
class IoThread final : public Poller {
 public:
  /// `looks`: whether it is the one of all threads that queries the nodes of a cluster. The address
  /// is that of topologies other than a cluster.
  static Result<std::unique_ptr<IoThread>> create(SharedState& shared, Resolver& resolver,
                                                  const Address& address, bool looks);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  Status start(std::size_t index);
  /// After SharedState::stopping was set and wake() called.
  void join();
  /// After join() of all threads: finishes what was submitted too late.
  void drain();
  /// For a forked child, where the thread does not exist.
  void close_descriptors() noexcept;

  /// The only link, with topologies other than a cluster.
  [[nodiscard]] Link& link() noexcept { return *link_; }
  /// The links of a cluster.
  [[nodiscard]] ClusterLinks& links() noexcept { return *links_; }

  /// From any thread.
  void push(Request& request) noexcept {
    if (queue_.push(request)) wake();
  }
  void wake() noexcept override;
  void watch(int fd, bool output, EventHandler& handler) override;
  void watch_end(int fd, EventHandler& handler) override;
  void unwatch(int fd) override;
  void take_submitted(Link::TimePoint now) override;

 private:
  explicit IoThread(SharedState& shared) : shared_(shared) {}
  void shut_down();
  template <typename Do>
  decltype(auto) with_links(Do&& act) {
    return links_ ? act(*links_) : act(*link_);
  }
  void run();
  void set_events(int fd, std::uint32_t events, EventHandler& handler);
  /// Whether there were events, which have been dealt with then. `may_wait`: waits for them.
  bool take_events(bool may_wait);
  int wait(std::span<epoll_event> events, Link::TimePoint now, Link::TimePoint until);

  static constexpr int kEventsMax = 16;

  SharedState& shared_;
  int epoll_fd_ = -1;
  int event_fd_ = -1;
  bool has_pwait2_ = true;
  SubmissionQueue queue_;
  std::optional<Link> link_;
  std::unique_ptr<ClusterLinks> links_;
  std::thread thread_;
};

}  // namespace fcap::redis
