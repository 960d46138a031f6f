#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/load.h"

namespace fcap::bench {

/// redis-benchmark with one connection: what Redis does when its client does nothing else. Its CPU
/// time is that of the child process.
class RedisBenchmark {
 public:
  /// `command`'s words; "__rand_int__" becomes a random number below `random_below`, 12 digits.
  RedisBenchmark(RedisConsole& console, std::vector<std::string> command, std::size_t pipeline,
                 std::size_t random_below);

  /// About that long, judged by the last run; the first one is preceded by a short trial.
  Measurement run(double seconds);

 private:
  Measurement run_requests(std::size_t requests);

  RedisConsole& console_;
  std::vector<std::string> command_;
  std::size_t pipeline_;
  std::size_t random_below_;
  double expected_per_second_ = 0;
};

}  // namespace fcap::bench
