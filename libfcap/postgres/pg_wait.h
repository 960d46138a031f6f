#pragma once

#include <chrono>
#include <string_view>

#include <fcap/status.h>

namespace fcap::postgres {

/// How long to wait for PostgreSQL, and what ends the wait early.
struct PgWait {
  std::chrono::steady_clock::time_point deadline;
  /// Once this descriptor is readable, every wait ends with kUnavailable. -1: none.
  int stop_fd = -1;
};

/// Waits until a socket is ready for these events of poll().
Status wait_for_socket(int fd, short events, const PgWait& wait);

/// A failure with libpq's text, which may have several lines, on one and without control
/// characters.
Status pg_error(StatusCode code, std::string_view text, bool retryable);

}  // namespace fcap::postgres
