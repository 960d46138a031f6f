#pragma once

#include <string_view>
#include <vector>

#include <fcap/rule_set.h>
#include <fcap/status.h>

#include "cli/simulate/simulation.h"

namespace fcap::cli {

/// "limit=1..10" or "RULE:limit=1..10": the same rules with each of these limits.
struct LimitSweep {
  std::string rule;  ///< empty: every rule that caps impressions
  std::uint32_t first = 1;
  std::uint32_t last = 1;
};

/// At most 50 steps; `text` is what --sweep gives.
Result<LimitSweep> parse_sweep(std::string_view text);

/// The rule sets of the sweep, from the lowest limit to the highest.
Result<std::vector<NamedRules>> rule_sets_of(const LimitSweep& sweep, const NamedRules& base);

}  // namespace fcap::cli
