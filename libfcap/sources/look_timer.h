#pragma once

#include <chrono>
#include <optional>
#include <random>
#include <string>

#include "base/background_thread.h"
#include "base/poll_schedule.h"
#include "postgres/pg_listener.h"
#include "sources/reload_policy.h"

namespace fcap::sources {

/// When a source is looked at: at intervals with jitter, after a failure with a growing delay, and
/// at once when woken or, where it listens, when a change is announced. A listener's connection is
/// made and re-established within wait().
///
/// Not thread-safe: of the thread that looks.
class LookTimer {
 public:
  using Clock = std::chrono::steady_clock;

  LookTimer(std::chrono::milliseconds interval, base::LoopEvents events);

  /// Also LISTENs, on that channel.
  void listen(std::string conninfo, std::string channel);

  /// Until it is time to look; false: stop.
  bool wait();
  /// After a look: whether there was an answer, and whether it was a change.
  void looked(bool answered, bool changed);
  [[nodiscard]] bool stopping() const;

 private:
  void connect_listener();
  [[nodiscard]] double random() { return std::uniform_real_distribution<double>()(random_); }

  const base::LoopEvents events_;
  std::optional<postgres::PgListener> listener_;
  base::PollSchedule schedule_;
  std::minstd_rand random_;
  Clock::time_point look_at_{};
  bool announced_ = false;
};

}  // namespace fcap::sources
