#pragma once

#include <algorithm>
#include <chrono>
#include <csignal>
#include <ctime>
#include <stop_token>
#include <thread>

#include <sys/types.h>

namespace fcap::testing {

/// Leaves a Redis a fiftieth of a core as long as this lives: about 10,000 appends per second, also
/// where other processes are busy. After each millisecond it is stopped for 50 times as long as it
/// has run, but for half a second at most: it is slow, not dead, even where this thread itself
/// comes late and Redis has run for long.
class SlowRedis {
 public:
  explicit SlowRedis(pid_t redis)
      : thread_([redis](const std::stop_token& stop) {
          constexpr std::chrono::milliseconds kTurn{1};
          constexpr std::chrono::microseconds kUntilStopped{100};
          constexpr std::chrono::nanoseconds kStoppedMax{std::chrono::milliseconds{500}};
          auto before = used_by(redis);
          while (!stop.stop_requested()) {
            std::this_thread::sleep_for(kTurn);
            ::kill(redis, SIGSTOP);
            std::this_thread::sleep_for(kUntilStopped);
            const auto used = used_by(redis);
            std::this_thread::sleep_for(std::min(50 * (used - before), kStoppedMax));
            before = used;
            ::kill(redis, SIGCONT);
          }
        }) {}

  /// The CPU time that a process has used so far, the threads that have ended included.
  static std::chrono::nanoseconds used_by(pid_t process) {
    clockid_t clock = {};
    timespec used = {};
    if (clock_getcpuclockid(process, &clock) == 0) clock_gettime(clock, &used);
    return std::chrono::seconds{used.tv_sec} + std::chrono::nanoseconds{used.tv_nsec};
  }

 private:
  std::jthread thread_;
};

}  // namespace fcap::testing
