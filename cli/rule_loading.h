#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "cli/settings.h"

namespace fcap::cli {

/// Rules, and where they came from.
struct LoadedRules {
  RuleSetSpec spec;
  std::shared_ptr<const RuleSet> rules;
  std::string source;  ///< for people: "file rules.json", "PostgreSQL", "snapshot /var/…"
  /// Since a file was written; none for PostgreSQL, which has just been asked.
  std::optional<std::chrono::milliseconds> age;
  /// Why a better source was passed over; empty when it was not.
  std::string warning;
};

/// Reads the rules without judging them: `rules` is null. From the rules file, else PostgreSQL,
/// else the snapshot. The status names the setting to change.
Result<LoadedRules> read_rules(const AccessSettings& access);

/// read_rules(), then builds the rule set.
Result<LoadedRules> load_rules(const AccessSettings& access);

}  // namespace fcap::cli
