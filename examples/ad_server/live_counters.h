#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "latency_histogram.h"

namespace ad_server {

/// What the workers and the probe count, and the live view and the summary read.
struct LiveCounters {
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> candidates_allowed{0};
  std::atomic<std::uint64_t> candidates_capped{0};
  std::atomic<std::uint64_t> shown{0};
  /// Shown although the history could not be read.
  std::atomic<std::uint64_t> shown_fail_open{0};
  std::atomic<std::uint64_t> not_published{0};
  ResponseTimes check_us;
  ResponseTimes propagation_us;
  /// Probes whose impression was never seen by a check.
  std::atomic<std::uint64_t> probes_unseen{0};
};

}  // namespace ad_server
