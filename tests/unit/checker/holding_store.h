#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <limits>
#include <mutex>
#include <string_view>
#include <thread>

#include <fcap/store.h>

namespace fcap::checker_test {

/// Holds what it is asked until the test answers it, and may outlive the Checker.
class HoldingStore final : public Store {
 public:
  void get(std::string_view, Deadline, StoreCompletion& done) noexcept override { hold(done); }
  void append(std::string_view, std::string_view, Instant, Deadline,
              StoreCompletion& done) noexcept override {
    hold(done);
  }
  void compare_and_set(const CompareAndSet&, Deadline, StoreCompletion& done) noexcept override {
    hold(done);
  }
  [[nodiscard]] WriteTerms write_terms() const noexcept override {
    return {.reservation_life_max = kDefaultReservationLifeMax};
  }

  /// What is asked while so many are held is refused.
  std::size_t room = std::numeric_limits<std::size_t>::max();

  /// The one that has been held longest; waits until there is one.
  StoreCompletion& take() {
    while (true) {
      {
        const std::lock_guard lock(mutex_);
        if (!held_.empty()) {
          StoreCompletion& first = *held_.front();
          held_.pop_front();
          return first;
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds{100});
    }
  }

 private:
  void hold(StoreCompletion& done) {
    {
      const std::lock_guard lock(mutex_);
      if (held_.size() < room) return held_.push_back(&done);
    }
    done.complete({.code = StoreCode::kOverloaded});
  }
  std::mutex mutex_;
  std::deque<StoreCompletion*> held_;
};

}  // namespace fcap::checker_test
