#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fcap/status.h>

#include "postgres/pg_connection.h"

namespace fcap::postgres {

/// Names one state of the tables that a version row stands for. The time tells apart two histories
/// that reached the same number, as after a restored backup.
struct TableVersion {
  std::uint64_t version = 0;
  /// And, where a shrink was accepted, up to which version (accepted_version()).
  std::string changed_at;

  bool operator==(const TableVersion&) const = default;
};

/// Begins a transaction that sees one state of all tables, cannot outlive a client that hangs,
/// prints instants whatever the server's settings, and takes a row that this role may not see for
/// an error rather than for one row less.
Status begin_reading(PgConnection& connection, const PgWait& wait);

/// A shrink up to this version is meant, says TableVersion::changed_at; 0: none is. It stands in
/// that text because whoever publishes rules in a snapshot passes the text on.
[[nodiscard]] std::uint64_t accepted_version(std::string_view changed_at) noexcept;

/// Reads the one row of `table`, an SQL name.
Result<TableVersion> read_version(PgConnection& connection, std::string_view table,
                                  const PgWait& wait);

}  // namespace fcap::postgres
