#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace fcap::bench {

/// Durations as they were taken, for exact percentiles. Not thread-safe.
class Durations {
 public:
  void reserve(std::size_t count) { us_.reserve(count); }
  void record(std::chrono::nanoseconds duration) {
    us_.push_back(static_cast<double>(duration.count()) / 1e3);
  }
  void add(const Durations& other) { us_.insert(us_.end(), other.us_.begin(), other.us_.end()); }
  [[nodiscard]] std::size_t count() const noexcept { return us_.size(); }

  /// The duration that `share` (0 to 1) of the recorded ones do not exceed; NaN if none was
  /// recorded.
  double percentile_us(double share) {
    if (us_.empty()) return std::numeric_limits<double>::quiet_NaN();
    const double rank = std::ceil(share * static_cast<double>(us_.size())) - 1;
    const auto at = us_.begin() + static_cast<std::ptrdiff_t>(std::max(0.0, rank));
    std::nth_element(us_.begin(), at, us_.end());
    return *at;
  }

 private:
  std::vector<double> us_;
};

}  // namespace fcap::bench
