#pragma once

#include <chrono>
#include <map>
#include <string>

#include "harness/measured.h"

namespace fcap::bench {

/// Where the work of Redis, and of what is measured, goes.
inline constexpr int kRedisCore = 0;
inline constexpr int kClientCore = 1;

/// Binds all threads of a process, and those that they start, to a core; -1: to none. A machine of
/// one core is left as it is.
void pin(int pid, int core);

/// Time, and CPU time of processes, since it was made.
class Meter {
 public:
  /// `processes`: by the key of the column, such as {"redis_cpu_us", pid}.
  explicit Meter(std::map<std::string, int> processes);
  /// `what`_per_second, and µs of CPU time for one of so many.
  [[nodiscard]] Numbers per(const std::string& what, double count) const;

 private:
  [[nodiscard]] Numbers cpu_seconds() const;

  std::map<std::string, int> processes_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Numbers before_;
};

}  // namespace fcap::bench
