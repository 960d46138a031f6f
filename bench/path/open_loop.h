#pragma once

#include <atomic>
#include <random>

#include <sys/prctl.h>

#include "path/check_load.h"

namespace fcap::bench {

/// A thread that starts checks and sleeps in between shares the client's core with the I/O thread;
/// waking up for each check would take the core from it. What a check waits for the next waking
/// counts as its latency.
inline constexpr std::chrono::nanoseconds kSleepMin{50'000};
/// Not measured: connections, caches and the coalescing settle.
inline constexpr double kWarmUpSeconds = 0.2;
inline constexpr std::chrono::milliseconds kLagMax{100};
inline constexpr std::size_t kInFlightMax = 60'000;

inline Numbers percentiles(Durations& durations) {
  return {{"p50_us", durations.percentile_us(0.5)},
          {"p99_us", durations.percentile_us(0.99)},
          {"p999_us", durations.percentile_us(0.999)},
          {"max_us", durations.percentile_us(1)}};
}

/// Checks at a fixed rate; latencies are those from the intended start of each to its answer. One
/// I/O thread.
class OpenLoop {
 public:
  OpenLoop(Checker& checker, const CheckWorkload& workload, double per_second)
      : checker_(checker),
        workload_(workload),
        candidates_(workload.candidates()),
        gap_ns_(1e9 / per_second) {}

  Numbers run(double seconds) {
    prctl(PR_SET_TIMERSLACK, 1UL);
    begin_ = Clock::now() + std::chrono::milliseconds(1);
    const auto warm_up = static_cast<std::uint64_t>(kWarmUpSeconds * 1e9 / gap_ns_);
    const auto total = warm_up + static_cast<std::uint64_t>(seconds * 1e9 / gap_ns_);
    measured_from_ = intended(warm_up);
    latency_.reserve(total - warm_up);
    bool sustained = true;
    for (std::uint64_t i = 0; i < total && sustained;) {
      const Clock::time_point now = Clock::now();
      while (i < total && intended(i) <= now) start(intended(i++));
      sustained = i == total || now - intended(i) < kLagMax;
      // Bounded, so that a rate far beyond saturation does not only fill queues.
      sustained = sustained && pending_.load(std::memory_order_relaxed) < kInFlightMax;
      if (i < total) std::this_thread::sleep_until(std::max(intended(i), now + kSleepMin));
    }
    while (pending_.load(std::memory_order_acquire) > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto took = std::chrono::duration<double>(last_answer_ - measured_from_).count();
    Numbers numbers = percentiles(latency_);
    numbers["answered_per_second"] = took > 0 ? static_cast<double>(latency_.count()) / took : 0;
    numbers["failed"] = failed_;
    sustained = sustained && last_answer_ - intended(total) < kLagMax;
    numbers["sustained"] = sustained ? 1 : 0;
    return numbers;
  }

 private:
  [[nodiscard]] Clock::time_point intended(std::uint64_t check) const {
    return begin_ + std::chrono::nanoseconds(
                        static_cast<std::int64_t>(static_cast<double>(check) * gap_ns_));
  }

  void start(Clock::time_point intended) {
    pending_.fetch_add(1, std::memory_order_relaxed);
    checker_.check_async(
        workload_.user(random_()), candidates_, {},
        [this, intended](const CheckResult& result) { answered(intended, result.reason); });
  }

  // On the I/O thread alone: there is one.
  void answered(Clock::time_point intended, Reason reason) {
    if (intended >= measured_from_) {
      last_answer_ = Clock::now();
      latency_.record(last_answer_ - intended);
      if (reason != Reason::kPassed) ++failed_;
    }
    pending_.fetch_sub(1, std::memory_order_release);
  }

  Checker& checker_;
  const CheckWorkload& workload_;
  const std::vector<Candidate> candidates_;
  const double gap_ns_;
  std::minstd_rand random_;
  Clock::time_point begin_;
  Clock::time_point measured_from_;
  Clock::time_point last_answer_;
  std::atomic<std::size_t> pending_{0};
  Durations latency_;
  double failed_ = 0;
};

}  // namespace fcap::bench
