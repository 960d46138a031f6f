#pragma once

#include <chrono>

#include <time.h>

namespace fcap::bench {

using Clock = std::chrono::steady_clock;

/// As std::this_thread::sleep_until(), in one system call.
inline void sleep_until(Clock::time_point until) {
  const auto since_epoch = until.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
  const timespec time{.tv_sec = seconds.count(),
                      .tv_nsec = std::chrono::nanoseconds(since_epoch - seconds).count()};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

}  // namespace fcap::bench
