#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

namespace fcap::base {

/// Gives numbers in [0, 1). Injected, so that tests decide.
using Jitter = std::function<double()>;

/// Numbers that differ from seed to seed.
inline Jitter seeded_jitter(std::uint64_t seed) {
  // SplitMix64.
  return [seed]() mutable {
    seed += 0x9E3779B97F4A7C15U;
    std::uint64_t mixed = seed;
    mixed = (mixed ^ (mixed >> 30U)) * 0xBF58476D1CE4E5B9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94D049BB133111EBU;
    mixed ^= mixed >> 31U;
    return static_cast<double>(mixed >> 11U) * 0x1.0p-53;
  };
}

/// Waits that double from a first to a longest value; each is drawn from the upper half of its
/// step, so that many clients which failed together do not come back together.
///
/// Not thread-safe.
class Backoff {
 public:
  using Duration = std::chrono::steady_clock::duration;

  Backoff(Duration first, Duration longest, Jitter jitter)
      : first_(first), longest_(longest), jitter_(std::move(jitter)) {}

  /// The wait after so many failures in a row, of which there is at least one.
  [[nodiscard]] Duration after(std::uint32_t failures) {
    constexpr std::uint32_t kDoublingsMax = 30;
    const auto doublings = static_cast<int>(std::clamp(failures, 1U, kDoublingsMax) - 1);
    const double step = std::min(std::ldexp(static_cast<double>(first_.count()), doublings),
                                 static_cast<double>(longest_.count()));
    return Duration{static_cast<Duration::rep>(step / 2 + step / 2 * jitter_())};
  }

  /// The wait after one more failure than the last time.
  [[nodiscard]] Duration next() { return after(++failures_); }
  void reset() noexcept { failures_ = 0; }

 private:
  Duration first_;
  Duration longest_;
  std::uint32_t failures_ = 0;
  Jitter jitter_;
};

}  // namespace fcap::base
