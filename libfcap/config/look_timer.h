#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>

#include "config/background_thread.h"
#include "config/pg_listener.h"
#include "config/reload_policy.h"

namespace fcap::config {

/// When a source is looked at: at intervals with jitter, after a failure with a growing delay, and
/// at once when woken or, where it listens, when a change is announced. A listener's connection is
/// made and made anew within wait().
///
/// Not thread-safe: of the thread that looks.
class LookTimer {
 public:
  using Clock = std::chrono::steady_clock;

  LookTimer(std::chrono::milliseconds interval, LoopEvents events);

  /// Also LISTENs, on that channel.
  void listen(std::string conninfo, std::string channel);

  /// Until it is time to look; false: stop. Calls `idle` now and then, for as long as it says that
  /// there is more to do.
  bool wait(const std::function<bool()>& idle);
  /// After a look: whether there was an answer, and whether it was a change.
  void looked(bool answered, bool changed);
  [[nodiscard]] bool stopping() const;

 private:
  void connect_listener();
  [[nodiscard]] double random() { return std::uniform_real_distribution<double>()(random_); }

  const LoopEvents events_;
  std::optional<PgListener> listener_;
  PollSchedule schedule_;
  std::minstd_rand random_;
  Clock::time_point look_at_{};
  bool announced_ = false;
};

}  // namespace fcap::config
