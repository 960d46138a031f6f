#pragma once

#include <chrono>
#include <cstdint>

#include "harness/load.h"
#include "updater/running_updater.h"

namespace fcap::bench {

/// Time and processor time since it was made.
class Meter {
 public:
  explicit Meter(const Servers& servers) : servers_(servers) {}
  [[nodiscard]] Numbers per_event(std::uint64_t events) const {
    const std::chrono::duration<double> took = Clock::now() - started_;
    const auto each = [events](double seconds) {
      return 1e6 * seconds / static_cast<double>(events);
    };
    return {{"events_per_second", static_cast<double>(events) / took.count()},
            {"client_cpu_us", each(process_cpu_seconds() - own_)},
            {"redis_cpu_us", each(cpu_seconds(servers_.redis_pid) - redis_)},
            {"broker_cpu_us", each(cpu_seconds(servers_.broker_pid) - broker_)}};
  }

 private:
  using Clock = std::chrono::steady_clock;

  const Servers& servers_;
  Clock::time_point started_ = Clock::now();
  double own_ = process_cpu_seconds();
  double redis_ = cpu_seconds(servers_.redis_pid);
  double broker_ = cpu_seconds(servers_.broker_pid);
};

}  // namespace fcap::bench
