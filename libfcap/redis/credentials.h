#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <fcap/redis_options.h>

#include "base/background_thread.h"
#include "base/file_stamp.h"
#include "tls/context.h"

namespace fcap::redis {

/// What connections are made with: the passwords and the certificates. Those that come from files
/// are read again on a thread of their own when the files change.
///
/// Thread safety: current(), generation() and look_soon() from any thread.
class Credentials {
 public:
  struct Current {
    std::string password;
    std::string sentinel_password;
    std::shared_ptr<tls::Context> tls;  // null: plain
  };
  /// Something has changed (generation()), or, with a text, cannot be read: then what was read
  /// before stays. On the thread of the files.
  using OnLook = std::function<void(const std::string& problem)>;

  Credentials() = default;

  /// Reads everything, and watches the files if there are any. `options` must outlive this.
  Status start(const RedisOptions& options, OnLook on_look);
  /// Ends the watch.
  void stop() noexcept { thread_.stop(); }
  /// For a forked child, where the thread does not exist.
  void close_descriptors() noexcept { thread_.close_descriptors(); }

  [[nodiscard]] Current current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  /// Grows when current() changes, but for the password of Sentinels: a connection to one of them
  /// is used as long as it lasts.
  [[nodiscard]] std::uint64_t generation() const noexcept {
    return generation_.load(std::memory_order_acquire);
  }
  /// Looks at the files without waiting for the next regular look. Does not block.
  void look_soon() noexcept {
    if (!files_.empty()) thread_.wake();
  }

 private:
  [[nodiscard]] std::vector<base::FileStamp> stamps() const;
  Status read(Current& current) const;
  void run();
  void look();

  const RedisOptions* options_ = nullptr;
  OnLook on_look_;
  std::vector<std::string> files_;
  std::vector<base::FileStamp> stamps_;  // of what current_ was read from
  mutable std::mutex mutex_;
  Current current_;  // guarded by mutex_
  std::atomic<std::uint64_t> generation_{0};
  base::BackgroundThread thread_;
};

}  // namespace fcap::redis
