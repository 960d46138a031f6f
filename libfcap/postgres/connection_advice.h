#pragma once

#include <string>

#include <libpq-fe.h>

#include "postgres/pg_wait.h"

namespace fcap::postgres {

/// What to change in the connection string or at the server, after an attempt to connect has
/// failed; libpq's own words seldom say. Empty: nothing is known.
///
/// Where libpq says only that the server's certificate is refused, this asks the server for it once
/// more, by a connection of its own, and within `wait`.
[[nodiscard]] std::string what_to_change(PGconn& failed, const PgWait& wait);

}  // namespace fcap::postgres
