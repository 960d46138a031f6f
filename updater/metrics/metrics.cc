#include "updater/metrics/metrics.h"

#include <algorithm>

namespace fcap::updater {

void DurationHistogram::observe(std::chrono::microseconds duration, std::uint64_t times) noexcept {
  const std::int64_t us = std::max<std::int64_t>(duration.count(), 0);
  std::size_t bucket = 0;
  while (bucket < kBuckets && us > bound(bucket).count()) ++bucket;
  counts_[bucket].fetch_add(times, std::memory_order_relaxed);
  sum_us_.fetch_add(us * static_cast<std::int64_t>(times), std::memory_order_relaxed);
}

}  // namespace fcap::updater
