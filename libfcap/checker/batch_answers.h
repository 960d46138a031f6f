#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fcap/reserve.h>

namespace fcap::checker {

/// Where the answers of one reserve_batch() come together.
///
/// Thread safety: all functions from any thread; one thread waits.
class BatchAnswers {
 public:
  /// Throws std::bad_alloc.
  explicit BatchAnswers(std::size_t count) : results_(count), left_(count) {}

  /// Once for each index.
  void put(std::size_t index, ReserveResult result) noexcept {
    const std::lock_guard lock(mutex_);
    results_[index] = std::move(result);
    if (--left_ == 0) all_.notify_one();
  }
  /// All of them.
  [[nodiscard]] std::vector<ReserveResult> wait() noexcept {
    std::unique_lock lock(mutex_);
    all_.wait(lock, [this] { return left_ == 0; });
    return std::move(results_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<ReserveResult> results_;  // guarded by mutex_
  std::size_t left_;                    // guarded by mutex_
};

/// The place of one answer.
struct BatchSlot {
  std::shared_ptr<BatchAnswers> answers;
  std::size_t index = 0;
};

}  // namespace fcap::checker
