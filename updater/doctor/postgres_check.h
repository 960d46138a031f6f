#pragma once

#include "updater/settings/settings.h"
#include "updater/watch/finding.h"

namespace fcap::updater {

/// Reads rules and segments as the updater does, and looks at the schema and at the clock. Changes
/// nothing.
void check_postgres_server(const Settings& settings, Findings& findings);

}  // namespace fcap::updater
