#pragma once

#include <optional>
#include <string>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "config/pg_connection.h"
#include "config/pg_version.h"

namespace fcap::config {

struct LoadedRules {
  RuleSetSpec spec;
  TableVersion version;
};

/// Connects, reads the version row and, unless it is `known`, everything, all as of one moment.
/// None: it is still `known`. A connection of its own and one transaction, so that it works through
/// a transaction pooler. One bad row refuses the whole; the status names each bad row.
Result<std::optional<LoadedRules>> load_if_changed(const std::string& conninfo,
                                                   const std::optional<TableVersion>& known,
                                                   const PgWait& wait);

}  // namespace fcap::config
