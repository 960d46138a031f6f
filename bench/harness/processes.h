#pragma once

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include <unistd.h>

#include "harness/measured.h"
#include "support/process.h"
#include "support/service.h"
#include "support/slow_redis.h"

namespace fcap::bench {

/// Where the work of Redis, and of what is measured, goes.
inline constexpr int kRedisCore = 0;
inline constexpr int kClientCore = 1;
inline constexpr int kAnyCore = -1;

/// Binds all threads of a process, and those that they start, to a core. On a machine with one
/// core, everything runs on that core.
inline void pin(int pid, int core) {
  const long last = ::sysconf(_SC_NPROCESSORS_ONLN) - 1;
  const std::string cores =
      core == kAnyCore ? "0-" + std::to_string(last) : std::to_string(std::min<long>(core, last));
  testing::run({"taskset", "--all-tasks", "--cpu-list", "--pid", cores, std::to_string(pid)});
}

/// A server of the part's own, on a core of its own: from now on this process has another.
class PartServer {
 public:
  /// `kind`: as scripts/service calls it.
  PartServer(const std::string& kind, int core) : service_(kind, directory_.path()) {
    // The server inherits it; a JVM asks at its start how many cores it has.
    pin(getpid(), core);
    service_.start();
    pin(getpid(), kClientCore);
  }
  [[nodiscard]] int port() const { return std::stoi(service_.value("port")); }
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + service_.value("port"); }
  [[nodiscard]] int pid() const { return std::stoi(service_.value("pid")); }
  [[nodiscard]] testing::Service& service() { return service_; }

 private:
  testing::TemporaryDirectory directory_;
  testing::Service service_;
};

/// Time, and CPU time of processes, since it was made.
class Meter {
 public:
  /// `processes`: by the key of the column, such as {"redis_cpu_us", pid}.
  explicit Meter(std::map<std::string, int> processes)
      : processes_(std::move(processes)), before_(cpu_seconds()) {}

  /// `what`_per_second, and µs of CPU time for one of so many.
  [[nodiscard]] Numbers per(const std::string& what, double count) const {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started_;
    Numbers numbers = {{what + "_per_second", count / took.count()}};
    for (const auto& [key, seconds] : cpu_seconds()) {
      numbers[key] = 1e6 * (seconds - before_.at(key)) / count;
    }
    return numbers;
  }

 private:
  [[nodiscard]] Numbers cpu_seconds() const {
    Numbers seconds;
    for (const auto& [key, pid] : processes_) {
      seconds[key] = std::chrono::duration<double>(testing::SlowRedis::used_by(pid)).count();
    }
    return seconds;
  }

  std::map<std::string, int> processes_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  Numbers before_;
};

}  // namespace fcap::bench
