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
  /// Waits for a lookup that is running (the system's resolver bounds it); drops waiting ones.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  void resolve(const Address& address, Callback callback);

 private:
  struct Job {
    Address address;
    Callback callback;
  };
  void run();

  const base::ThreadHook hook_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> jobs_;   // guarded by mutex_; at most one a link
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;     // guarded by mutex_ until the destructor
};

}  // namespace fcap::redis
