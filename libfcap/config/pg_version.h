#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <fcap/status.h>

#include "config/pg_connection.h"

namespace fcap::config {

/// Names one state of the tables that a version row stands for. The time tells apart two histories
/// that reached the same number, as after a restored backup.
struct TableVersion {
  std::uint64_t version = 0;
  std::string changed_at;

  bool operator==(const TableVersion&) const = default;
};

/// Begins a transaction that sees one state of all tables, cannot outlive a client that hangs,
/// prints instants whatever the server's settings, and takes a row that this role may not see for
/// an error rather than for one row less.
Status begin_reading(PgConnection& connection, const PgWait& wait);

/// Reads the one row of `table`, an SQL name.
Result<TableVersion> read_version(PgConnection& connection, std::string_view table,
                                  const PgWait& wait);

}  // namespace fcap::config
