#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <fcap/status.h>

#include "redis/address.h"
#include "redis/resolver.h"

namespace fcap::redis {

/// Looks names up for a thread that may wait, but not for as long as the system's resolver likes.
/// One lookup per name is under way at a time, and one that takes too long serves the next
/// question.
///
/// Thread safety: belongs to one thread.
class NameLookups {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Waits end when `stop_fd` is readable. `hook` runs first on the resolver's thread.
  NameLookups(base::ThreadHook hook, int stop_fd) : stop_fd_(stop_fd), resolver_(std::move(hook)) {}

  [[nodiscard]] Result<Endpoints> look_up(const Address& address, TimePoint until);

 private:
  struct NameLookup {
    std::mutex mutex;
    std::condition_variable wake;
    std::optional<Result<Endpoints>> endpoints;  // guarded by mutex
  };
  [[nodiscard]] bool is_stopping() const noexcept;

  const int stop_fd_;
  std::map<std::string, std::shared_ptr<NameLookup>> lookups_;  // by address
  Resolver resolver_;
};

}  // namespace fcap::redis
