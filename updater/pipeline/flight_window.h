#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace fcap::updater {

/// How many writes may wait for Redis at once, so that they wait for a bounded time: more while
/// batches are answered fast, fewer when they take longer. A fixed number would be too small for a
/// fast Redis, or would overload a slow one: its writes would time out while they are being
/// executed, and would be repeated.
///
/// Not thread-safe.
class FlightWindow {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kWritesMin = 500;
  static constexpr std::size_t kWritesAtStart = 2'000;

  FlightWindow(Clock::duration wait_max, std::size_t writes_max) noexcept
      : wait_max_(wait_max), writes_max_(std::max(writes_max, kWritesMin)) {
    restart({});
  }

  /// For a new connection: nothing is known of the server.
  void restart(Clock::time_point now) noexcept {
    writes_ = std::min(kWritesAtStart, writes_max_);
    shrunk_at_ = now;
  }

  /// A batch that was sent at `sent` was answered.
  void came_back(Clock::time_point sent, Clock::time_point now) noexcept {
    if (now - sent > wait_max_) return shrink(sent, now);
    if (now - sent < wait_max_ / 2) writes_ = std::min(writes_ + writes_ / 2, writes_max_);
  }
  /// A batch was not answered in time.
  void timed_out(Clock::time_point sent, Clock::time_point now) noexcept { shrink(sent, now); }

  [[nodiscard]] std::size_t writes() const noexcept { return writes_; }
  /// Whether Redis takes less than the most that could be sent to it.
  [[nodiscard]] bool reduced() const noexcept { return writes_ < writes_max_; }

 private:
  void shrink(Clock::time_point sent, Clock::time_point now) noexcept {
    // Batches that were sent before the last decrease say nothing about the smaller window.
    if (sent < shrunk_at_) return;
    writes_ = std::max(writes_ / 2, kWritesMin);
    shrunk_at_ = now;
  }

  Clock::duration wait_max_;
  std::size_t writes_max_;
  std::size_t writes_ = kWritesAtStart;
  Clock::time_point shrunk_at_;
};

}  // namespace fcap::updater
