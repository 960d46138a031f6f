#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <fcap/redis_options.h>
#include <fcap/status.h>

#include "base/background_thread.h"

namespace fcap::checker {

/// Where replaced rule sets and segments wait until nobody uses them, to be destroyed on a thread
/// of their own: a million rules take hundreds of milliseconds to free, which no checking thread
/// and no owner of a result should pay for.
///
/// Thread safety: destroy_when_unused() from any thread.
class RetiredSets {
 public:
  /// `let_go` is called before each look, to release the sets that idle memory still holds
  /// (BlockingChecks::drop_rules() and its like).
  explicit RetiredSets(std::function<void()> let_go) : let_go_(std::move(let_go)) {}
  ~RetiredSets() { stop(); }
  RetiredSets(const RetiredSets&) = delete;
  RetiredSets& operator=(const RetiredSets&) = delete;

  Status start(const ThreadCallback& thread_started);
  /// Keeps the set, which may be null, until this is the only reference. Out of memory, or when
  /// stopped, it is let go of here and now.
  void destroy_when_unused(std::shared_ptr<const void> set) noexcept;
  /// What is still in use then is let go of: its last owner destroys it.
  void stop() noexcept;

 private:
  void run() noexcept;
  /// Takes out those that nobody else uses.
  [[nodiscard]] std::vector<std::shared_ptr<const void>> take_unused() noexcept;

  const std::function<void()> let_go_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<const void>> sets_;
  base::BackgroundThread thread_;
};

}  // namespace fcap::checker
