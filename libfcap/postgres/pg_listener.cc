#include "postgres/pg_listener.h"

namespace fcap::postgres {

std::optional<PgListener::Clock::time_point> PgListener::connect_at() const {
  if (connection_) return std::nullopt;
  return connect_at_;
}

Status PgListener::connect(const PgWait& wait, double random) {
  unannounced_ = 0;
  Result<PgConnection> made = PgConnection::connect(conninfo_, wait);
  Status status = made.status();
  if (status.ok()) status = made.value().query("LISTEN " + channel_, wait).status();
  if (!status.ok()) {
    drop(schedule_.after_failure(random));
    return status;
  }
  connection_.emplace(std::move(made).value());
  return {};
}

bool PgListener::take_notifications() {
  if (!connection_) return false;
  const Result<std::uint32_t> taken = connection_->take_notifications();
  if (!taken.ok()) {
    drop(schedule_.after_failure(0.5));
    return true;
  }
  if (taken.value() == 0) return false;
  // Only a connection that has proved its use starts the backoff afresh; one that is accepted and
  // closed again at once would otherwise be re-established every second.
  (void)schedule_.after_answer(0);
  unannounced_ = 0;
  return true;
}

void PgListener::found_by_polling() {
  if (connection_ && ++unannounced_ >= 2) drop(schedule_.after_failure(0.5));
}

void PgListener::drop(std::chrono::milliseconds delay) {
  connection_.reset();
  connect_at_ = Clock::now() + delay;
}

}  // namespace fcap::postgres
