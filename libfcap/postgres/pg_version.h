#pragma once

#include <string_view>

#include <fcap/status.h>

#include "base/table_version.h"
#include "postgres/pg_connection.h"

namespace fcap::postgres {

/// Begins a transaction that sees one state of all tables, cannot outlive a client that hangs,
/// prints instants whatever the server's settings, and takes a row that this role may not see for
/// an error rather than for one row less.
Status begin_reading(PgConnection& connection, const PgWait& wait);

/// Reads the one row of `table`, an SQL name.
Result<base::TableVersion> read_version(PgConnection& connection, std::string_view table,
                                        const PgWait& wait);

}  // namespace fcap::postgres
