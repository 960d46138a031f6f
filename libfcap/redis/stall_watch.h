#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace fcap::redis {

/// Notices when an I/O thread was kept from its requests for so long that they expire although the
/// server has done its part. Pure: it is told when the thread went to sleep and woke up.
class StallWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  enum class LateCause : std::uint8_t {
    kNone,
    kBusy,       ///< the thread was at work, in callbacks most likely
    kOverslept,  ///< the machine woke the thread up late
  };

  static constexpr std::chrono::milliseconds kBusyAfter{5};
  static constexpr std::chrono::milliseconds kOversleptAfter{20};

  /// The thread went to sleep at `asleep_at`, until `planned` at most, and woke up at `now`.
  void woke(TimePoint asleep_at, TimePoint planned, TimePoint now) noexcept {
    before_ = LateCause::kNone;
    if (planned < TimePoint::max() && now - std::max(planned, asleep_at) >= kOversleptAfter) {
      before_ = LateCause::kOverslept;
    }
    if (is_busy(asleep_at)) before_ = LateCause::kBusy;
    woke_at_ = now;
  }

  /// What kept the thread from its requests since it last went to sleep, or right before that.
  [[nodiscard]] LateCause cause(TimePoint now) const noexcept {
    return is_busy(now) ? LateCause::kBusy : before_;
  }

 private:
  [[nodiscard]] bool is_busy(TimePoint now) const noexcept { return now - woke_at_ >= kBusyAfter; }

  TimePoint woke_at_ = TimePoint::max();
  LateCause before_ = LateCause::kNone;
};

}  // namespace fcap::redis
