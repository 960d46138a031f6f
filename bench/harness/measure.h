#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "support/process.h"
#include "support/slow_redis.h"

namespace fcap::bench {

/// What one run found, by the keys of the table's columns.
using Numbers = std::map<std::string, double>;

using Clock = std::chrono::steady_clock;

inline double micros(std::chrono::nanoseconds duration) {
  return static_cast<double>(duration.count()) / 1e3;
}
inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// The value that `share` (0 to 1) of the values do not exceed; 0.5 gives the median, of two values
/// in the middle the lower one. NaN if there are no values.
inline double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const double rank = std::ceil(share * static_cast<double>(values.size())) - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// Durations as they were taken, for exact percentiles. Not thread-safe.
class Durations {
 public:
  void reserve(std::size_t count) { us_.reserve(count); }
  void record(std::chrono::nanoseconds duration) { us_.push_back(micros(duration)); }
  void add(const Durations& other) { us_.insert(us_.end(), other.us_.begin(), other.us_.end()); }
  [[nodiscard]] std::size_t count() const noexcept { return us_.size(); }
  double percentile_us(double share) { return percentile(us_, share); }

 private:
  std::vector<double> us_;
};

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

/// Starts servers on a core, which they inherit; a JVM asks at its start how many cores it has.
/// From then on this process has the client's.
template <typename Servers>
std::unique_ptr<Servers> start_on(int core) {
  pin(getpid(), core);
  auto servers = std::make_unique<Servers>();
  pin(getpid(), kClientCore);
  return servers;
}

/// Time, and CPU time of processes, since it was made.
class Meter {
 public:
  /// `processes`: by the key of the column, such as {"redis_cpu_us", pid}.
  explicit Meter(std::map<std::string, int> processes)
      : processes_(std::move(processes)), before_(cpu_us()) {}

  /// `what`_per_second, and µs of CPU time for one of so many.
  [[nodiscard]] Numbers per(const std::string& what, double count) const {
    Numbers numbers = {{what + "_per_second", count / seconds_since(started_)}};
    for (const auto& [key, us] : cpu_us()) numbers[key] = (us - before_.at(key)) / count;
    return numbers;
  }

 private:
  [[nodiscard]] Numbers cpu_us() const {
    Numbers us;
    for (const auto& [key, pid] : processes_) us[key] = micros(testing::SlowRedis::used_by(pid));
    return us;
  }

  std::map<std::string, int> processes_;
  Clock::time_point started_ = Clock::now();
  Numbers before_;
};

/// Requests of this process that are asked over and over, as fast as the answers come, until told
/// to stop.
class Load {
 public:
  Load() = default;
  virtual ~Load() = default;
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Asks for so long, after a warm-up of a tenth of the time. What a request took: throughput, CPU
  /// time of client and Redis; and how many requests failed.
  virtual Numbers measure(int redis_pid, double seconds) {
    using Seconds = std::chrono::duration<double>;
    failed_ = 0;
    stop_ = false;
    start();
    std::this_thread::sleep_for(Seconds(std::max(0.05, seconds / 10)));

    const Meter meter({{"client_cpu_us", getpid()}, {"redis_cpu_us", redis_pid}});
    const std::uint64_t done_before = done_;
    measuring_ = true;
    std::this_thread::sleep_for(Seconds(seconds));
    measuring_ = false;
    const auto done = static_cast<double>(done_ - done_before);
    Numbers found = meter.per("requests", std::max(1.0, done));

    stop_ = true;
    while (running_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    found["failed"] = static_cast<double>(failed_);
    return found;
  }

 protected:
  /// Sets running_, and each of these asks as long as it goes_on().
  virtual void start() = 0;

  /// Counts an answer. Whether another request is to follow; if not, one less is running.
  [[nodiscard]] bool goes_on(bool passed) {
    (passed ? done_ : failed_).fetch_add(1, std::memory_order_relaxed);
    const bool stops = stop_.load(std::memory_order_relaxed);
    if (stops) running_.fetch_sub(1);
    return !stops;
  }
  /// Neither warming up nor ending.
  [[nodiscard]] bool measuring() const { return measuring_.load(std::memory_order_relaxed); }

  std::atomic<std::size_t> running_{0};

 private:
  std::atomic<bool> stop_{false};
  std::atomic<bool> measuring_{false};
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::uint64_t> failed_{0};
};

}  // namespace fcap::bench
