#include "postgres/pg_wait.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <poll.h>

#include "base/outside_text.h"

namespace fcap::postgres {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Status pg_error(StatusCode code, std::string_view text, bool retryable) {
  return Status::error(code, "PostgreSQL: " + base::one_line(text), retryable);
}

Status wait_for_socket(int fd, short events, const PgWait& wait) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(wait.deadline - steady_clock::now());
    if (left.count() <= 0) {
      return pg_error(StatusCode::kDeadlineExceeded, "no answer in the time allowed", true);
    }
    std::array<pollfd, 2> polled{pollfd{fd, events, 0}, pollfd{wait.stop_fd, POLLIN, 0}};
    const int timeout_ms = static_cast<int>(std::min<milliseconds::rep>(left.count(), 60'000));
    const int ready = ::poll(polled.data(), polled.size(), timeout_ms);
    if (ready < 0 && errno != EINTR) {
      return pg_error(StatusCode::kInternal, std::generic_category().message(errno), true);
    }
    if (polled[1].revents != 0) return pg_error(StatusCode::kUnavailable, "shutting down", true);
    if (ready > 0 && polled[0].revents != 0) return {};
  }
}

}  // namespace fcap::postgres
