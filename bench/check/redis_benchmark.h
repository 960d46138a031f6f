#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sys/resource.h>

#include <fcap/redis_options.h>

#include "harness/load.h"
#include "support/process.h"

namespace fcap::bench {

/// redis-benchmark with one connection: what Redis does when its client does nothing else. Its CPU
/// time is that of the child process.
class RedisBenchmark final : public Requests {
 public:
  /// `command`'s words; "__rand_int__" becomes a random number below `random_below`, 12 digits.
  RedisBenchmark(const RedisOptions& redis, const std::vector<std::string>& command,
                 std::size_t pipeline, std::size_t random_below)
      : line_({"redis-benchmark", "-u",
               fmt::format("redis://{}/{}", redis.addresses.front(), redis.database), "-c", "1",
               "--csv", "-P", std::to_string(pipeline), "-r", std::to_string(random_below), "-n",
               ""}),
        requests_(line_.size() - 1) {
    line_.insert(line_.end(), command.begin(), command.end());
  }

  /// About that long, judged by the last run; the first one is preceded by a short trial.
  Numbers measure(int redis_pid, double seconds) override {
    constexpr std::size_t kTrialRequests = 5'000;
    if (expected_per_second_ == 0) (void)run(redis_pid, kTrialRequests);
    return run(redis_pid, static_cast<std::size_t>(expected_per_second_ * seconds) + 1);
  }

 private:
  Numbers run(int redis_pid, std::size_t requests) {
    line_[requests_] = std::to_string(requests);
    const auto count = static_cast<double>(requests);
    const Meter meter({{"redis_cpu_us", redis_pid}});
    const double client_before = children_cpu_us();
    expected_per_second_ = requests_per_second_of(testing::run(line_));
    Numbers found = meter.per("requests", count);
    // Its own count, without its start and its end.
    found["requests_per_second"] = expected_per_second_;
    found["client_cpu_us"] = (children_cpu_us() - client_before) / count;
    found["failed"] = 0;
    return found;
  }

  static double children_cpu_us() {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return 1e6 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }

  // The last line is "command","requests/s",…; the command may hold commas.
  static double requests_per_second_of(const testing::Finished& finished) {
    const std::string& csv = finished.output;
    const std::size_t line = csv.find_last_of('\n', csv.size() < 2 ? 0 : csv.size() - 2);
    const std::size_t comma = csv.find("\",\"", line == std::string::npos ? 0 : line);
    if (comma == std::string::npos) {
      throw std::runtime_error("redis-benchmark said: " + csv + finished.errors);
    }
    return std::stod(csv.substr(comma + 3));
  }

  std::vector<std::string> line_;
  std::size_t requests_;  // where in line_
  double expected_per_second_ = 0;
};

}  // namespace fcap::bench
