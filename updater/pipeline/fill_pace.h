#pragma once

#include <algorithm>
#include <chrono>

namespace fcap::updater {

/// How much of the main loop's time goes into gaps: all that is left while no live messages come, a
/// tenth beside live messages, and a twentieth while these are late. It is never less, so that a
/// gap is filled however busy the loop is.
///
/// Not thread-safe.
class FillPace {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kPartBesideLive = 10;
  static constexpr int kPartBesideLate = 20;
  /// For how long a live message, or a late one, counts.
  static constexpr std::chrono::milliseconds kRemembered{1000};
  /// The longest stretch of work that is saved up, and that is paid back.
  static constexpr std::chrono::milliseconds kSavedMax{5};
  static constexpr std::chrono::milliseconds kOwedMax{20};

  /// Live messages have been read.
  void live(Clock::time_point now) noexcept { live_until_ = now + kRemembered; }
  /// Live messages wait, or were written late.
  void late(Clock::time_point now) noexcept { late_until_ = now + kRemembered; }

  /// Whether a small step of filling may be taken now.
  [[nodiscard]] bool due(Clock::time_point now) noexcept {
    const Clock::duration passed = std::max(now - looked_at_, Clock::duration{0});
    looked_at_ = now;
    saved_ = std::min<Clock::duration>(saved_ + passed / part(now), kSavedMax);
    return saved_ > Clock::duration{0};
  }
  /// A step of filling has taken this long.
  void worked(Clock::duration took) noexcept {
    // The machine may have been busy with something else meanwhile.
    saved_ = std::max<Clock::duration>(saved_ - took, -kOwedMax);
  }

 private:
  [[nodiscard]] int part(Clock::time_point now) const noexcept {
    if (now < late_until_) return kPartBesideLate;
    return now < live_until_ ? kPartBesideLive : 1;
  }

  Clock::time_point live_until_{};
  Clock::time_point late_until_{};
  Clock::time_point looked_at_{};
  Clock::duration saved_{0};
};

}  // namespace fcap::updater
