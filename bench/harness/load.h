#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "harness/processes.h"

namespace fcap::bench {

/// Requests that are asked over and over, as fast as the answers come, until told to stop.
class Load {
 public:
  Load() = default;
  virtual ~Load() = default;
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Runs for `seconds` after a warm-up of a tenth of that. What a request took: throughput, CPU
  /// time of this process and of Redis; and how many requests failed.
  Numbers measure(int redis_pid, double seconds);

 protected:
  /// Sets running_, and goes on until should_stop().
  virtual void start() = 0;
  virtual void stopped() {}

  [[nodiscard]] bool should_stop() const { return stop_.load(std::memory_order_relaxed); }
  void count(bool passed) { (passed ? done_ : failed_).fetch_add(1, std::memory_order_relaxed); }

  std::atomic<std::size_t> running_{0};

 private:
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace fcap::bench
