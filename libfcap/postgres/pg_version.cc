#include "postgres/pg_version.h"

#include <algorithm>
#include <charconv>
#include <chrono>

namespace fcap::postgres {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr std::string_view kAcceptedWords = " shrink accepted to ";

}  // namespace

std::uint64_t accepted_version(std::string_view changed_at) noexcept {
  const auto at = changed_at.find(kAcceptedWords);
  if (at == std::string_view::npos) return 0;
  const std::string_view number = changed_at.substr(at + kAcceptedWords.size());
  std::uint64_t version = 0;
  (void)std::from_chars(number.data(), number.data() + number.size(), version);
  return version;
}

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

Result<TableVersion> read_version(PgConnection& connection, std::string_view table,
                                  const PgWait& wait) {
  const std::string name(table);
  // A view of the host's own may lack the column accepted_version.
  Result<PgRows> rows = connection.query(
      "SELECT version::text, changed_at::text || coalesce('" + std::string(kAcceptedWords) +
          "' || (to_jsonb(v) ->> 'accepted_version'), '') FROM " + name + " v LIMIT 2",
      wait);
  if (!rows.ok()) return rows.status();
  if (rows.value().count() != 1) {
    return Status::error(StatusCode::kCorrupt, name + ": must have exactly one row");
  }
  const std::string_view version = rows.value().cell(0, 0).value_or("");
  TableVersion read;
  read.changed_at = rows.value().cell(0, 1).value_or("");
  const auto [end, error] =
      std::from_chars(version.data(), version.data() + version.size(), read.version);
  if (error != std::errc{} || end != version.data() + version.size()) {
    return Status::error(StatusCode::kCorrupt, name + ", version: must be a number");
  }
  return read;
}

}  // namespace fcap::postgres
