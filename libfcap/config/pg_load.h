#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "config/pg_connection.h"

namespace fcap::config {

/// Names one state of the tables. The time tells apart two histories that reached the same number,
/// as after a restored backup.
struct RulesMarker {
  std::uint64_t version = 0;
  std::string changed_at;

  bool operator==(const RulesMarker&) const = default;
};

struct LoadedRules {
  RuleSetSpec spec;
  RulesMarker marker;
};

/// Connects, reads the version row and, unless it is `known`, everything, all as of one moment.
/// None: it is still `known`. A connection of its own and one transaction, so that it works through
/// a transaction pooler. One bad row refuses the whole; the status names each bad row.
Result<std::optional<LoadedRules>> load_if_changed(const std::string& conninfo,
                                                   const std::optional<RulesMarker>& known,
                                                   const PgWait& wait);

}  // namespace fcap::config
