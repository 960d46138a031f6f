#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/caller_state.h"

namespace fcap::checker {

/// The time that one batch has.
///
/// Thread safety: all functions from any thread.
class BatchTime {
 public:
  using Clock = std::chrono::steady_clock;

  explicit BatchTime(std::chrono::microseconds within) noexcept : deadline_(begun_ + within) {}

  /// When its answers are wanted.
  [[nodiscard]] Clock::time_point deadline() const noexcept { return deadline_; }
  /// Whether the time is over, so that nothing more is to be asked. With no time at all, each call
  /// may ask the store, but nothing is waited for.
  [[nodiscard]] bool is_late() const noexcept {
    return deadline_ > begun_ && Clock::now() >= deadline_;
  }

 private:
  const Clock::time_point begun_ = Clock::now();
  const Clock::time_point deadline_;
};

/// Where the answers of one batch come together.
///
/// Thread safety: all functions from any thread; one thread waits.
template <typename Result>
class BatchAnswers : public BatchTime {
 public:
  /// Throws std::bad_alloc.
  BatchAnswers(std::size_t count, std::chrono::microseconds within)
      : BatchTime(within), results_(count), left_(count) {}

  /// Once for each index.
  void put(std::size_t index, Result result) noexcept {
    const std::lock_guard lock(mutex_);
    results_[index] = std::move(result);
    if (--left_ == 0) all_.notify_one();
  }
  /// False: some answers are missing at the deadline.
  [[nodiscard]] bool wait_until_deadline() noexcept {
    std::unique_lock lock(mutex_);
    return all_.wait_until(lock, deadline(), [this] { return left_ == 0; });
  }
  /// All of them, however long that takes.
  [[nodiscard]] std::vector<Result> take() noexcept {
    std::unique_lock lock(mutex_);
    all_.wait(lock, [this] { return left_ == 0; });
    return std::move(results_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<Result> results_;  // guarded by mutex_
  std::size_t left_;             // guarded by mutex_
};

/// The place of one answer.
template <typename Result>
struct BatchSlot {
  std::shared_ptr<BatchAnswers<Result>> answers;
  std::size_t index = 0;
};

/// Makes the calls of one batch and waits for their answers: `start(i, slot)` begins the i-th call,
/// whose answer goes to the slot, and gives something by which `cut_off` can have it answered at
/// once. Out of memory, the list is empty.
template <typename Result, typename Start, typename CutOff>
[[nodiscard]] std::vector<Result> answer_all(std::size_t count, std::chrono::microseconds within,
                                             const Start& start, const CutOff& cut_off) noexcept {
  const base::CallerState caller;
  using Slot = BatchSlot<Result>;
  Slot slot;
  std::vector<decltype(start(std::size_t{0}, slot))> calls;
  try {
    slot.answers = std::make_shared<BatchAnswers<Result>>(count, within);
    calls.reserve(count);
  } catch (...) {  // no memory
    return {};
  }
  for (slot.index = 0; slot.index < count; ++slot.index) {
    calls.push_back(start(slot.index, slot));
  }
  if (!slot.answers->wait_until_deadline()) {
    for (auto& call : calls) cut_off(call);
  }
  return slot.answers->take();
}

}  // namespace fcap::checker
