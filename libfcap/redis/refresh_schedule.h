#pragma once

#include <algorithm>
#include <chrono>

#include "base/poll_schedule.h"

namespace fcap::redis {

/// When a cluster's nodes are asked: at once, about every minute, and sooner when that is wanted or
/// when it failed, but never within a second of the last time. Free of clocks.
///
/// Thread safety: none.
class RefreshSchedule {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kEvery{60'000};
  static constexpr std::chrono::milliseconds kApartMin{1'000};

  /// When the next refresh is due, if it is wanted or not.
  [[nodiscard]] TimePoint due(bool wanted) const noexcept { return wanted ? earliest_ : regular_; }

  /// A refresh ended at `now`. `random` from [0, 1) spreads processes that all saw the same
  /// failure.
  void ended(TimePoint now, bool succeeded, double random) {
    using std::chrono::milliseconds;
    const auto spread =
        static_cast<milliseconds::rep>(static_cast<double>(kApartMin.count()) / 2 * random);
    earliest_ = now + kApartMin + milliseconds{spread};
    const auto pause = succeeded ? polls_.after_answer(random) : polls_.after_failure(random);
    regular_ = std::max(earliest_, now + pause);
  }

 private:
  base::PollSchedule polls_{kEvery};
  TimePoint earliest_ = TimePoint::min();
  TimePoint regular_ = TimePoint::min();
};

}  // namespace fcap::redis
