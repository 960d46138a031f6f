#include "postgres/pg_connection.h"

#include <array>

#include <poll.h>

#include "postgres/connection_advice.h"
#include "postgres/conninfo.h"
#include "postgres/english_messages.h"

namespace fcap::postgres {
namespace {

struct ClearResult {
  void operator()(PGresult* result) const noexcept { PQclear(result); }
};
struct FreeBytes {
  void operator()(char* bytes) const noexcept { PQfreemem(bytes); }
};

// The status that says what the statement's failure means for the caller.
Status statement_error(const PGresult* result) {
  const char* field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const std::string_view state = field == nullptr ? std::string_view{} : field;
  const std::string_view message = PQresultErrorMessage(result);
  const std::string_view kind = state.substr(0, 2);
  // No table, column, function or operator: the schema is not the one of sql/.
  if (state == "42P01" || state == "42703" || state == "42883" || state == "42804") {
    return pg_error(StatusCode::kNotFound,
                    std::string(message) +
                        "(this version of fcap expects another schema: run fcap-migrate, which is "
                        "sql/migrate in a checkout)",
                    false);
  }
  if (state == "42501") {
    return pg_error(StatusCode::kRefused,
                    std::string(message) + "(sql/roles.sql grants what each account needs)", false);
  }
  if (state == "57014") return pg_error(StatusCode::kDeadlineExceeded, message, true);
  // Connection lost, resources, shutdown, serialization; without a state libpq itself gave up.
  const bool passing =
      state.empty() || kind == "08" || kind == "53" || kind == "57" || kind == "40";
  return pg_error(passing ? StatusCode::kUnavailable : StatusCode::kInvalidArgument, message,
                  passing);
}

}  // namespace

std::optional<std::string_view> PgRows::cell(int row, int column) const noexcept {
  if (PQgetisnull(result_.get(), row, column) != 0) return std::nullopt;
  return std::string_view(PQgetvalue(result_.get(), row, column),
                          static_cast<std::size_t>(PQgetlength(result_.get(), row, column)));
}

Result<PgConnection> PgConnection::connect(const std::string& conninfo, const PgWait& wait) {
  const EnglishMessages english;
  // The connection string is given as dbname; it may override the defaults before it. The
  // keepalives detect a listener's dead peer within about a minute.
  const std::array keywords{"fallback_application_name",
                            "keepalives_idle",
                            "keepalives_interval",
                            "keepalives_count",
                            "dbname",
                            "client_encoding",
                            static_cast<const char*>(nullptr)};
  const std::array values{
      "fcap", "30", "10", "3", conninfo.c_str(), "UTF8", static_cast<const char*>(nullptr)};
  PgConnection made(PQconnectStartParams(keywords.data(), values.data(), /*expand_dbname=*/1));
  if (made.connection_ == nullptr) {
    return Status::error(StatusCode::kInternal, "PostgreSQL: out of memory", true);
  }
  // libpq's own receiver writes to the host's standard error.
  PQsetNoticeReceiver(
      made.connection_.get(), [](void*, const PGresult*) {}, nullptr);
  if (PQstatus(made.connection_.get()) == CONNECTION_BAD) {
    if (Status status = check_conninfo(conninfo); !status.ok()) return status;
    return made.not_connected(wait);
  }
  if (Status status = made.finish_connecting(wait); !status.ok()) return status;
  return made;
}

Status PgConnection::finish_connecting(const PgWait& wait) {
  PostgresPollingStatusType next = PGRES_POLLING_WRITING;
  while (next != PGRES_POLLING_OK) {
    if (next == PGRES_POLLING_FAILED) return not_connected(wait);
    const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    if (Status status = wait_for_socket(socket(), events, wait); !status.ok()) return status;
    next = PQconnectPoll(connection_.get());
  }
  if (PQsetnonblocking(connection_.get(), 1) != 0) return lost();
  return {};
}

Status PgConnection::not_connected(const PgWait& wait) const {
  std::string text = PQerrorMessage(connection_.get());
  // Each line becomes a part of the sentence.
  if (!text.ends_with('\n')) text += '\n';
  text += what_to_change(*connection_, wait);
  return pg_error(StatusCode::kUnavailable, text, true);
}

Status PgConnection::lost() const {
  return pg_error(StatusCode::kUnavailable, PQerrorMessage(connection_.get()), true);
}

Status PgConnection::flush(const PgWait& wait) {
  while (true) {
    const int unsent = PQflush(connection_.get());
    if (unsent == 0) return {};
    if (unsent < 0) return lost();
    if (Status status = wait_for_socket(socket(), POLLIN | POLLOUT, wait); !status.ok()) {
      return status;
    }
    // A server that wants to send first must be read, or both wait for each other.
    if (PQconsumeInput(connection_.get()) == 0) return lost();
  }
}

Status PgConnection::read_until_idle(const PgWait& wait) {
  while (PQisBusy(connection_.get()) != 0) {
    if (Status status = wait_for_socket(socket(), POLLIN, wait); !status.ok()) return status;
    if (PQconsumeInput(connection_.get()) == 0) return lost();
  }
  return {};
}

Result<PgRows> PgConnection::query(const std::string& sql, const PgWait& wait) {
  if (PQsendQuery(connection_.get(), sql.c_str()) == 0) return lost();
  if (Status status = flush(wait); !status.ok()) return status;
  PgRows last(nullptr);
  Status failure;
  while (true) {
    if (Status status = read_until_idle(wait); !status.ok()) return status;
    PGresult* result = PQgetResult(connection_.get());
    if (result == nullptr) break;
    last = PgRows(result);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && failure.ok()) {
      failure = statement_error(result);
    }
  }
  if (!failure.ok()) return failure;
  return last;
}

Status PgConnection::copy_out(const std::string& sql, const PgWait& wait, const TakeCopied& take) {
  if (PQsendQuery(connection_.get(), sql.c_str()) == 0) return lost();
  if (Status status = flush(wait); !status.ok()) return status;
  bool copied = false;
  while (true) {
    if (Status status = read_until_idle(wait); !status.ok()) return status;
    const std::unique_ptr<PGresult, ClearResult> result(PQgetResult(connection_.get()));
    if (result == nullptr) break;
    const ExecStatusType state = PQresultStatus(result.get());
    if (state == PGRES_COPY_OUT) {
      if (Status status = read_copied(wait, take); !status.ok()) return status;
      copied = true;
    } else if (state != PGRES_COMMAND_OK) {
      return statement_error(result.get());
    }
  }
  if (copied) return {};
  return Status::error(StatusCode::kInternal, "PostgreSQL: nothing was copied");
}

Status PgConnection::read_copied(const PgWait& wait, const TakeCopied& take) {
  while (true) {
    char* bytes = nullptr;
    const int length = PQgetCopyData(connection_.get(), &bytes, /*async=*/1);
    const std::unique_ptr<char, FreeBytes> owned(bytes);
    if (length == -1) return {};
    if (length < -1) return lost();
    if (length > 0) {
      Status status = take({bytes, static_cast<std::size_t>(length)});
      if (!status.ok()) return status;
      continue;
    }
    if (Status status = wait_for_socket(socket(), POLLIN, wait); !status.ok()) return status;
    if (PQconsumeInput(connection_.get()) == 0) return lost();
  }
}

Result<std::uint32_t> PgConnection::take_notifications() {
  if (PQconsumeInput(connection_.get()) == 0) return lost();
  std::uint32_t count = 0;
  while (PGnotify* notification = PQnotifies(connection_.get())) {
    PQfreemem(notification);
    ++count;
  }
  return count;
}

}  // namespace fcap::postgres
