#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <libpq-fe.h>

#include <fcap/status.h>

#include "postgres/pg_wait.h"

namespace fcap::postgres {

/// The rows of one answer, as text.
class PgRows {
 public:
  explicit PgRows(PGresult* result) : result_(result) {}

  [[nodiscard]] int count() const noexcept { return PQntuples(result_.get()); }
  [[nodiscard]] int columns() const noexcept { return PQnfields(result_.get()); }
  /// None for NULL. Valid as long as the rows.
  [[nodiscard]] std::optional<std::string_view> cell(int row, int column) const noexcept;

 private:
  struct Clear {
    void operator()(PGresult* result) const noexcept { PQclear(result); }
  };
  std::unique_ptr<PGresult, Clear> result_;
};

/// A connection whose every wait has an end, even when the server is frozen: libpq's non-blocking
/// interface and poll(). Only the lookup of a host's name is bounded by nothing but the system's
/// resolver; an address (or hostaddr=…) avoids it.
///
/// Not thread-safe.
class PgConnection {
 public:
  /// `conninfo` is a libpq connection string. Its connect_timeout is not used: `wait` is. The error
  /// has libpq's words, and names what to change where that is known.
  static Result<PgConnection> connect(const std::string& conninfo, const PgWait& wait);

  /// Runs one or more statements and gives the last one's rows. After a failure the connection is
  /// of no further use.
  Result<PgRows> query(const std::string& sql, const PgWait& wait);

  /// Receives what COPY … TO STDOUT sends, message by message; a failure ends the reading.
  using TakeCopied = std::function<Status(std::string_view message)>;

  /// Runs one COPY … TO STDOUT. Holds one message at a time; after a failure as query().
  Status copy_out(const std::string& sql, const PgWait& wait, const TakeCopied& take);

  /// To wait for notifications on.
  [[nodiscard]] int socket() const noexcept { return PQsocket(connection_.get()); }

  /// Takes what has arrived, without waiting: the number of notifications. Fails when the
  /// connection is lost.
  Result<std::uint32_t> take_notifications();

 private:
  struct Finish {
    void operator()(PGconn* connection) const noexcept { PQfinish(connection); }
  };

  explicit PgConnection(PGconn* connection) : connection_(connection) {}
  Status finish_connecting(const PgWait& wait);
  Status flush(const PgWait& wait);
  Status read_until_idle(const PgWait& wait);
  Status read_copied(const PgWait& wait, const TakeCopied& take);
  [[nodiscard]] Status not_connected(const PgWait& wait) const;
  [[nodiscard]] Status lost() const;

  std::unique_ptr<PGconn, Finish> connection_;
};

}  // namespace fcap::postgres
