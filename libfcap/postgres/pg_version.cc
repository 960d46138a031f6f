#include "postgres/pg_version.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace fcap::postgres {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

bool read_number(std::string_view text, std::uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Status begin_reading(PgConnection& connection, const PgWait& wait) {
  const auto left = std::chrono::ceil<milliseconds>(wait.deadline - steady_clock::now());
  const std::string timeout_ms = std::to_string(std::max<milliseconds::rep>(left.count(), 1));
  return connection
      .query(
          "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
          "SET LOCAL statement_timeout = " +
              timeout_ms + ";SET LOCAL idle_in_transaction_session_timeout = " + timeout_ms +
              ";SET LOCAL row_security = off;SET LOCAL DateStyle = 'ISO';"
              "SET LOCAL TimeZone = 'UTC'",
          wait)
      .status();
}

Result<base::TableVersion> read_version(PgConnection& connection, std::string_view table,
                                        const PgWait& wait) {
  const std::string name(table);
  // A view of the host's own may lack the column accepted_version.
  Result<PgRows> rows = connection.query(
      "SELECT version::text, changed_at::text, coalesce(to_jsonb(v) ->> 'accepted_version', '0')"
      " FROM " +
          name + " v LIMIT 2",
      wait);
  if (!rows.ok()) return rows.status();
  if (rows.value().count() != 1) {
    return Status::error(StatusCode::kCorrupt, name + ": must have exactly one row");
  }
  const auto cell = [&rows](int column) { return rows.value().cell(0, column).value_or(""); };
  base::TableVersion read;
  read.changed_at = cell(1);
  if (!read_number(cell(0), read.version)) {
    return Status::error(StatusCode::kCorrupt, name + ", version: must be a number");
  }
  if (!read_number(cell(2), read.accepted_version)) {
    return Status::error(StatusCode::kCorrupt, name + ", accepted_version: must be a number");
  }
  return read;
}

}  // namespace fcap::postgres
