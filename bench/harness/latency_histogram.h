#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace fcap::bench {

/// Counts durations in buckets of at most 1.6 % width, 64 to each power of two, as HdrHistogram
/// does: from a nanosecond to 18 minutes in 17 KB. Not thread-safe.
class LatencyHistogram {
 public:
  void record(std::int64_t value_ns) noexcept {
    const auto value = static_cast<std::uint64_t>(value_ns < 0 ? 0 : value_ns);
    ++buckets_[bucket_of(value)];
    ++count_;
    if (value > max_ns_) max_ns_ = value;
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double max_us() const noexcept { return static_cast<double>(max_ns_) / 1e3; }

  /// The value that `share` (0 to 1) of the recorded ones do not exceed; 0 when there are none.
  [[nodiscard]] double percentile_us(double share) const noexcept {
    const double wanted = share * static_cast<double>(count_);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets && count_ > 0; ++i) {
      seen += buckets_[i];
      if (static_cast<double>(seen) < wanted || seen == 0) continue;
      const std::uint64_t edge = upper_edge(i);
      return static_cast<double>(edge < max_ns_ ? edge : max_ns_) / 1e3;
    }
    return max_us();
  }

 private:
  static constexpr unsigned kSubBits = 6;
  static constexpr std::size_t kBuckets = (41 - kSubBits) << kSubBits;

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
    const std::uint64_t low = index - (static_cast<std::size_t>(shift) << kSubBits);
    return ((low + 1) << shift) - 1;
  }

  std::array<std::uint64_t, kBuckets> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ns_ = 0;
};

}  // namespace fcap::bench
