#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread.h"
#include "redis/address.h"

namespace fcap::redis {

using Endpoints = std::vector<Endpoint>;

/// The endpoint of a unix socket or a numeric address; empty for a name, which needs a Resolver.
[[nodiscard]] Endpoints numeric_endpoints(const Address& address);

/// Looks names up on a thread of its own, because getaddrinfo() blocks for as long as it likes. The
/// thread starts with the first name. Thread safety: all functions from any thread.
class Resolver {
 public:
  /// Called on the resolver's thread, once a resolve() unless the resolver is destroyed first.
  using Callback = std::function<void(Result<Endpoints>)>;

  explicit Resolver(base::ThreadHook hook = {}) : hook_(std::move(hook)) {}
  /// Drops lookups that wait, and leaves one that is running (which may take as long as the
  /// system's resolver likes) to end by itself (base::detach()): no callback is called afterwards.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  void resolve(const Address& address, Callback callback);

 private:
  struct ResolverJob {
    Address address;
    Callback callback;
  };
  // Shared with the thread, which may outlive the resolver.
  struct State {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<ResolverJob> jobs;  // guarded by mutex; at most one per link and replica
    bool stopping = false;         // guarded by mutex
    bool looking = false;          // guarded by mutex: in getaddrinfo()
  };
  static void run(State& state);

  const base::ThreadHook hook_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;  // guarded by the state's mutex until the destructor
};

}  // namespace fcap::redis
