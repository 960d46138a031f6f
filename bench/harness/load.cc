#include "harness/load.h"

#include <algorithm>

#include <sys/resource.h>

namespace fcap::bench {

double process_cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Measurement measure(Load& load, RedisConsole& console, double seconds) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  const std::uint64_t failed_before = load.failed();
  load.begin();
  std::this_thread::sleep_for(Seconds(std::max(0.05, seconds / 10)));

  const double redis_before = console.cpu_seconds();
  const double client_before = process_cpu_seconds();
  const std::uint64_t done_before = load.done();
  const Clock::time_point begin = Clock::now();
  std::this_thread::sleep_for(Seconds(seconds));
  const auto done = static_cast<double>(load.done() - done_before);
  const double took = Seconds(Clock::now() - begin).count();
  const double client = process_cpu_seconds() - client_before;
  const double redis = console.cpu_seconds() - redis_before;

  load.stop_and_wait();
  const double requests = std::max(1.0, done);
  return {.requests_per_second = done / took,
          .client_cpu_us = client / requests * 1e6,
          .redis_cpu_us = redis / requests * 1e6,
          .failed = load.failed() - failed_before};
}

}  // namespace fcap::bench
