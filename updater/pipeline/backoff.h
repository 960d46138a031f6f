#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>

namespace fcap::updater {

/// Waits that double from the first to the last, each shortened by a random part of up to a half,
/// so that many processes do not come back in step.
///
/// Not thread-safe.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds last, std::uint64_t seed)
      : first_(first), last_(last), random_(seed) {}

  /// The wait before attempt `failures` + 1, after `failures` (at least 1) in a row.
  [[nodiscard]] std::chrono::milliseconds after(std::uint32_t failures) {
    constexpr std::uint32_t kDoublingsMax = 20;
    const std::uint32_t doublings = std::min(failures > 0 ? failures - 1 : 0, kDoublingsMax);
    const auto full = std::min(last_, first_ * (std::int64_t{1} << doublings));
    std::uniform_int_distribution<std::int64_t> less(0, full.count() / 2);
    return full - std::chrono::milliseconds{less(random_)};
  }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds last_;
  std::mt19937_64 random_;
};

}  // namespace fcap::updater
