#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "harness/redis_console.h"

namespace fcap::bench {

/// Requests that are asked over and over, as fast as the answers come, until told to stop.
class Load {
 public:
  Load() = default;
  virtual ~Load() = default;
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  void begin() {
    stop_ = false;
    start();
  }
  void stop_and_wait() {
    stop_ = true;
    while (running_.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stopped();
  }
  [[nodiscard]] std::uint64_t done() const { return done_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t failed() const { return failed_.load(std::memory_order_relaxed); }

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

/// What a stretch of requests took.
struct Measurement {
  double requests_per_second = 0;
  double client_cpu_us = 0;  ///< of this process, a request
  double redis_cpu_us = 0;   ///< of the server, a request
  std::uint64_t failed = 0;
};

/// Runs the load for `seconds`, after a warm-up of a tenth of it.
Measurement measure(Load& load, RedisConsole& console, double seconds);

/// CPU time that this process has used so far.
double process_cpu_seconds();

}  // namespace fcap::bench
