#pragma once

#include <optional>
#include <string>
#include <vector>

#include <fcap/status.h>

#include "base/table_version.h"
#include "postgres/pg_connection.h"
#include "rules/shared_spec.h"

namespace fcap::sources {

/// What was read, apart from what the sink has got.
struct LoadedTables {
  base::TableVersion version;
  /// Rows that cannot be rules, and why: left out, one each.
  std::vector<std::string> quarantined = {};
};

/// Connects, reads the version row and, unless it is `known`, gives everything to `sink`, all as of
/// one moment. None: it is still `known`. A connection of its own and one transaction, so that it
/// works through a transaction pooler. Where more rows are bad than good, the whole is refused; the
/// status names each bad row.
Result<std::optional<LoadedTables>> load_if_changed(const std::string& conninfo,
                                                    const std::optional<base::TableVersion>& known,
                                                    const postgres::PgWait& wait,
                                                    rules::SpecSink& sink);

}  // namespace fcap::sources
