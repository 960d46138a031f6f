#pragma once

#include <string>

#include "sources/rule_refresher.h"

namespace fcap::updater {

/// What /readyz says of the rules, a line each: a version that is refused or cannot be read, and
/// rules that are quarantined. Empty: nothing is wrong with them.
[[nodiscard]] std::string rules_note(const sources::RefreshState& state);

}  // namespace fcap::updater
