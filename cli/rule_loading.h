#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "cli/cli_settings.h"

namespace fcap::cli {

/// Rules, and where they came from.
struct LoadedRules {
  RuleSetSpec spec;
  std::shared_ptr<const RuleSet> rules;
  std::string name = {};  ///< that a rules file gives itself; empty: none
  std::string source;     ///< for people: "file rules.json", "PostgreSQL", "snapshot /var/…"
  /// Since a file was written; none for PostgreSQL, which has just been asked.
  std::optional<std::chrono::milliseconds> age;
  /// Why a better source was passed over; empty when it was not.
  std::string warning = {};
  /// Rules that are wrong and not in force, and why. A rules file has none: it is refused instead.
  std::vector<std::string> quarantined = {};
  /// Why processes that run would not take these rules; empty: nothing is known of that.
  std::string refused_why = {};
  std::uint64_t accepted_version = 0;  ///< a shrink up to this one is meant

  [[nodiscard]] bool is_from_postgres() const { return source == "PostgreSQL"; }
};

/// Reads the rules without judging them: `rules` is null. From the rules file, else PostgreSQL,
/// else the snapshot. The status names the setting to change.
Result<LoadedRules> read_rules(const AccessSettings& access);

/// read_rules(), then builds the rule set.
Result<LoadedRules> load_rules(const AccessSettings& access);

}  // namespace fcap::cli
