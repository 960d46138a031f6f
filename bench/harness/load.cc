#include "harness/load.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include <unistd.h>

namespace fcap::bench {

Numbers Load::measure(int redis_pid, double seconds) {
  using Seconds = std::chrono::duration<double>;
  const std::uint64_t failed_before = failed_;
  stop_ = false;
  start();
  std::this_thread::sleep_for(Seconds(std::max(0.05, seconds / 10)));

  const Meter meter({{"client_cpu_us", getpid()}, {"redis_cpu_us", redis_pid}});
  const std::uint64_t done_before = done_;
  measuring_ = true;
  std::this_thread::sleep_for(Seconds(seconds));
  measuring_ = false;
  Numbers found =
      meter.per("requests", std::max(1.0, static_cast<double>(done_.load() - done_before)));

  stop_ = true;
  while (running_.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  stopped();
  found["failed"] = static_cast<double>(failed_ - failed_before);
  return found;
}

}  // namespace fcap::bench
