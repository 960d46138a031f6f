#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fcap/redis_options.h>

#include "harness/load.h"

namespace fcap::bench {

/// redis-benchmark with one connection: what Redis does when its client does nothing else. Its CPU
/// time is that of the child process.
class RedisBenchmark final : public Requests {
 public:
  /// `command`'s words; "__rand_int__" becomes a random number below `random_below`, 12 digits.
  RedisBenchmark(const RedisOptions& redis, const std::vector<std::string>& command,
                 std::size_t pipeline, std::size_t random_below);

  /// About that long, judged by the last run; the first one is preceded by a short trial.
  Numbers measure(int redis_pid, double seconds) override;

 private:
  Numbers run(int redis_pid, std::size_t requests);

  std::vector<std::string> line_;
  std::size_t requests_;  // where in line_
  double expected_per_second_ = 0;
};

}  // namespace fcap::bench
