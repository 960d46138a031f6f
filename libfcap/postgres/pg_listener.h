#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "base/poll_schedule.h"
#include "postgres/pg_connection.h"

namespace fcap::postgres {

/// LISTENs for changes on a connection of its own, which it re-establishes when it is lost. Only
/// a convenience: whoever uses it goes on polling, and tells it what polling found, so that a
/// connection on which nothing ever arrives (behind a pooler, say) is noticed.
///
/// Not thread-safe.
class PgListener {
 public:
  using Clock = std::chrono::steady_clock;

  /// `channel` is an SQL name.
  PgListener(std::string conninfo, std::string channel)
      : conninfo_(std::move(conninfo)),
        channel_(std::move(channel)),
        schedule_(std::chrono::seconds{60}) {}

  /// -1: not connected.
  [[nodiscard]] int socket() const { return connection_ ? connection_->socket() : -1; }

  /// When connect() is due; none while connected.
  [[nodiscard]] std::optional<Clock::time_point> connect_at() const;

  /// Connects and listens. After success the source must be looked at, since a change may just have
  /// been missed. After a failure the next attempt is put off, `random` from [0, 1).
  Status connect(const PgWait& wait, double random);

  /// Whether a notification has arrived. A lost connection is dropped, and says yes: something may
  /// have been missed.
  bool take_notifications();

  /// Polling, not listening, has found a change. The second such time in a row drops the
  /// connection.
  void found_by_polling();

 private:
  void drop(std::chrono::milliseconds delay);

  std::string conninfo_;
  std::string channel_;
  std::optional<PgConnection> connection_;
  base::PollSchedule schedule_;
  Clock::time_point connect_at_{};
  int unannounced_ = 0;
};

}  // namespace fcap::postgres
