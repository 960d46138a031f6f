#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace ad_server {

/// Counts durations in buckets of at most 1.6 % width (64 to each power of two), as HdrHistogram
/// does. record() may be called from many threads at once.
class ResponseTimes {
 public:
  void record(std::uint64_t value_us) noexcept {
    buckets_[bucket_of(value_us)].fetch_add(1, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t count() const noexcept {
    std::uint64_t total = 0;
    for (const auto& bucket : buckets_) total += bucket.load(std::memory_order_relaxed);
    return total;
  }

  /// The value that `share` (0 to 1) of the recorded ones do not exceed; 0 when there are none.
  [[nodiscard]] std::uint64_t percentile_us(double share) const noexcept {
    const std::uint64_t total = count();
    if (total == 0) return 0;
    auto wanted = static_cast<std::uint64_t>(share * static_cast<double>(total));
    if (wanted == 0) wanted = 1;
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += buckets_[i].load(std::memory_order_relaxed);
      if (seen >= wanted) return upper_edge(i);
    }
    return upper_edge(kBuckets - 1);
  }

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::size_t kBuckets = (40 - kSubBits) << kSubBits;

  static std::size_t bucket_of(std::uint64_t value) noexcept {
    if (value < (1U << kSubBits)) return static_cast<std::size_t>(value);
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - kSubBits - 1;
    const std::size_t index =
        (static_cast<std::size_t>(shift) << kSubBits) + static_cast<std::size_t>(value >> shift);
    return index < kBuckets ? index : kBuckets - 1;
  }

  static std::uint64_t upper_edge(std::size_t index) noexcept {
    if (index < (2U << kSubBits)) return index;
    const auto shift = static_cast<unsigned>(index >> kSubBits) - 1;
    const std::uint64_t low = (index - (static_cast<std::size_t>(shift) << kSubBits));
    return ((low + 1) << shift) - 1;
  }

  std::array<std::atomic<std::uint64_t>, kBuckets> buckets_{};
};

}  // namespace ad_server
