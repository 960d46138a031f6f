#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace fcap::redis {

/// Gives numbers in [0, 1). Injected, so that tests decide.
using Jitter = std::function<double()>;

/// Waits that double from a first to a longest value; each is drawn from the upper half of its
/// step, so that many clients which failed together do not come back together.
class Backoff {
 public:
  using Duration = std::chrono::steady_clock::duration;

  Backoff(Duration first, Duration longest, Jitter jitter)
      : first_(first), longest_(longest), step_(first), jitter_(std::move(jitter)) {}

  /// The next wait.
  [[nodiscard]] Duration next() {
    const auto half = static_cast<double>(step_.count()) / 2;
    step_ = std::min(step_ * 2, longest_);
    return Duration{static_cast<Duration::rep>(half + half * jitter_())};
  }

  void reset() noexcept { step_ = first_; }

 private:
  Duration first_;
  Duration longest_;
  Duration step_;
  Jitter jitter_;
};

}  // namespace fcap::redis
