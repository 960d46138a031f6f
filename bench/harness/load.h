#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include <unistd.h>

#include "harness/processes.h"

namespace fcap::bench {

/// Requests of this process that are asked over and over, as fast as the answers come, until told
/// to stop.
class Load {
 public:
  Load() = default;
  virtual ~Load() = default;
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Asks for so long, after a warm-up of a tenth of the time. What a request took: throughput, CPU
  /// time of client and Redis; and how many requests failed.
  virtual Numbers measure(int redis_pid, double seconds) {
    using Seconds = std::chrono::duration<double>;
    failed_ = 0;
    stop_ = false;
    start();
    std::this_thread::sleep_for(Seconds(std::max(0.05, seconds / 10)));

    const Meter meter({{"client_cpu_us", getpid()}, {"redis_cpu_us", redis_pid}});
    const std::uint64_t done_before = done_;
    measuring_ = true;
    std::this_thread::sleep_for(Seconds(seconds));
    measuring_ = false;
    const auto done = static_cast<double>(done_ - done_before);
    Numbers found = meter.per("requests", std::max(1.0, done));

    stop_ = true;
    while (running_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    found["failed"] = static_cast<double>(failed_);
    return found;
  }

 protected:
  /// Sets running_, and each of these asks as long as it goes_on().
  virtual void start() = 0;

  /// Counts an answer. Whether another request is to follow; if not, one less is running.
  [[nodiscard]] bool goes_on(bool passed) {
    (passed ? done_ : failed_).fetch_add(1, std::memory_order_relaxed);
    const bool stops = stop_.load(std::memory_order_relaxed);
    if (stops) running_.fetch_sub(1);
    return !stops;
  }
  /// Neither warming up nor ending.
  [[nodiscard]] bool measuring() const { return measuring_.load(std::memory_order_relaxed); }

  std::atomic<std::size_t> running_{0};

 private:
  std::atomic<bool> stop_{false};
  std::atomic<bool> measuring_{false};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace fcap::bench
