#pragma once

#include <algorithm>
#include <chrono>

#include "base/poll_schedule.h"

namespace fcap::redis {

/// When a node of a cluster is asked for the slots: at once, about every minute, and sooner when
/// that is wanted or when a node was of no use, but never within a second of the last time. Free of
/// clocks.
///
/// Thread safety: none.
class RefreshSchedule {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kEvery{60'000};
  static constexpr std::chrono::milliseconds kApartMin{1'000};

  /// When the next node is asked, if that is wanted or not.
  [[nodiscard]] TimePoint due(bool wanted) const noexcept { return wanted ? earliest_ : regular_; }

  /// A node was asked at `at`, or none could be reached until then, and the refresh has ended with
  /// that. `random` from [0, 1) spreads processes that all saw the same failure.
  void ended(TimePoint at, bool succeeded, double random) {
    goes_on(at, random);
    const auto pause = succeeded ? polls_.after_answer(random) : polls_.after_failure(random);
    regular_ = std::max(earliest_, at + pause);
  }

  /// The node that was asked at `at` was of no use, and another one is to be asked as soon as that
  /// is allowed.
  void goes_on(TimePoint at, double random) {
    using std::chrono::milliseconds;
    const auto spread =
        static_cast<milliseconds::rep>(static_cast<double>(kApartMin.count()) / 2 * random);
    earliest_ = at + kApartMin + milliseconds{spread};
    regular_ = earliest_;
  }

 private:
  base::PollSchedule polls_{kEvery};
  TimePoint earliest_ = TimePoint::min();
  TimePoint regular_ = TimePoint::min();
};

}  // namespace fcap::redis
