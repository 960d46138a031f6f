#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include <fcap/checker.h>

namespace fcap::checker {

/// Collects a LatencyHistogram.
///
/// Thread safety: all functions from any thread.
class Latency {
 public:
  /// One check in so many is measured, so that reading the clock costs next to nothing.
  static constexpr std::uint64_t kOneIn = 16;

  void add(std::chrono::nanoseconds taken) noexcept {
    const auto ns = static_cast<std::uint64_t>(std::max<std::int64_t>(taken.count(), 0));
    const std::uint64_t us = (ns + 999) / 1000;
    const auto bucket = static_cast<std::size_t>(us <= 1 ? 0 : std::bit_width(us - 1));
    counts_[std::min(bucket, counts_.size() - 1)].fetch_add(1, std::memory_order_relaxed);
    sum_ns_.fetch_add(ns, std::memory_order_relaxed);
  }

  [[nodiscard]] LatencyHistogram histogram() const noexcept {
    LatencyHistogram histogram;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      histogram.counts[i] = counts_[i].load(std::memory_order_relaxed);
    }
    histogram.sum = std::chrono::nanoseconds(sum_ns_.load(std::memory_order_relaxed));
    return histogram;
  }

 private:
  std::array<std::atomic<std::uint64_t>, LatencyHistogram::kBucketCount> counts_{};
  std::atomic<std::uint64_t> sum_ns_{0};
};

}  // namespace fcap::checker
