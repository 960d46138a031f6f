#pragma once

#include <string>

#include <libpq-fe.h>

#include "postgres/pg_wait.h"

namespace fcap::postgres {

/// Why the certificate of a server is refused, and what to change. libpq says only that it is.
/// Connects to the address that libpq has tried last, verifies by fcap's own TLS, and sends no
/// credentials. Empty: not known (as in a build without TLS).
[[nodiscard]] std::string why_certificate_is_refused(PGconn& failed, const PgWait& wait);

}  // namespace fcap::postgres
