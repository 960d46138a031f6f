#pragma once

#include "updater/settings/settings.h"
#include "updater/watch/finding.h"

namespace fcap::updater {

/// Connects to Redis as the updater does and looks whether it is fit: version, eviction, clock, the
/// recorded configuration, and whether the account may do what it must. For that it writes a key
/// of a user that cannot exist, and deletes it again. In a cluster it looks at every master.
void check_redis_server(const Settings& settings, Findings& findings);

}  // namespace fcap::updater
