#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <fcap/redis_options.h>

namespace fcap::redis {

/// What the I/O threads of one Client have in common.
struct SharedState {
  explicit SharedState(RedisOptions given) : options(std::move(given)) {}

  void log(LogLevel level, std::string_view text) const {
    if (options.log) options.log(level, text);
  }
  void set_last_error(std::string text) {
    const std::lock_guard lock(error_mutex);
    last_error = std::move(text);
  }

  // Submitted and not yet left. All threads write it: in its cache line there is otherwise only the
  // beginning of the options, which is read when connecting.
  alignas(64) std::atomic<std::size_t> operations{0};
  const RedisOptions options;
  std::atomic<std::uint64_t> epoch{0};
  std::atomic<std::size_t> links_ready{0};
  std::atomic<bool> stopping{false};
  mutable std::mutex error_mutex;
  std::string last_error;  // guarded by error_mutex
};

}  // namespace fcap::redis
