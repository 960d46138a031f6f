#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/redis_console.h"

namespace fcap::bench {

/// redis-benchmark with one connection: what Redis does when its client does nothing else. Its CPU
/// time is that of the child process.
class RedisBenchmark {
 public:
  /// `command`'s words; "__rand_int__" becomes a random number below `random_below`, 12 digits.
  RedisBenchmark(const RedisConsole& console, const std::vector<std::string>& command,
                 std::size_t pipeline, std::size_t random_below);

  /// About that long, judged by the last run; the first one is preceded by a short trial.
  Numbers run(double seconds);

 private:
  Numbers run_requests(std::size_t requests);

  int redis_pid_;
  std::vector<std::string> line_;
  std::size_t requests_;  // where in line_
  double expected_per_second_ = 0;
};

}  // namespace fcap::bench
