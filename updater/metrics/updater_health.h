#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fcap::updater {

/// What the main loop says of itself, and what /healthz, /readyz and systemd's watchdog make of it.
/// Written by the main loop, read from any thread.
class Health {
 public:
  using Clock = std::chrono::steady_clock;

  /// `stalled_after`: a loop without a beat for this long is not healthy.
  explicit Health(Clock::duration stalled_after) noexcept : stalled_after_(stalled_after) {}

  /// The main loop is alive. To be called at least once per second, from that loop only: it
  /// also feeds the watchdog, so a loop that hangs is restarted.
  void beat(Clock::time_point now) noexcept;
  /// Partitions are assigned, or the group has more members than the topic has partitions.
  void set_assigned(bool value) noexcept { assigned_.store(value, std::memory_order_relaxed); }
  /// What keeps events from being counted.
  enum class Problem : std::uint8_t {
    kMarks,        ///< marks cannot be read or written
    kWrites,       ///< Redis does not take events
    kDeadLetters,  ///< the dead-letter topic takes nothing
    kPartitions,   ///< Kafka does not give what is to be read
    kRejections,   ///< too many messages are rejected
    kClocks,       ///< this machine's and Redis' clocks differ
    kProgress,     ///< nothing moves on although there are messages
  };
  static constexpr std::size_t kProblems = 7;
  /// `what`: a line for /readyz; empty: there is no such problem.
  void set_problem(Problem kind, std::string_view what);

  [[nodiscard]] bool healthy(Clock::time_point now) const noexcept;
  /// Ready: healthy, assigned, without problems, with rules. `why` gets one line per reason.
  [[nodiscard]] bool ready(Clock::time_point now, std::string& why) const;

  /// Set before the first beat: what a beat does besides, at most once per `interval`.
  void on_beat(Clock::duration interval, std::function<void()> action);
  /// Set before anything reads: what else is wrong, asked for each time; one line per reason, empty
  /// when nothing is.
  void add_check(std::function<std::string(Clock::time_point)> check) {
    checks_.push_back(std::move(check));
  }
  /// Set before anything reads: whether there are rules, where rules are configured.
  void rules_check(std::function<bool()> check) { rules_check_ = std::move(check); }

 private:
  const Clock::duration stalled_after_;
  std::atomic<Clock::rep> last_beat_{0};  ///< 0: none yet
  std::atomic<bool> assigned_{false};
  mutable std::mutex mutex_;
  std::array<std::string, kProblems> problems_;  // guarded by mutex_
  std::vector<std::function<std::string(Clock::time_point)>> checks_;
  std::function<bool()> rules_check_;
  std::function<void()> beat_action_;
  Clock::duration beat_interval_{0};
  Clock::time_point last_action_;
};

}  // namespace fcap::updater
