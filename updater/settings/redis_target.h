#pragma once

#include <fcap/redis_options.h>
#include <fcap/status.h>

#include "updater/settings/settings.h"

namespace fcap::updater {

/// Where Redis is, read from the addresses or from a URL in their place. Fails if they are wrong,
/// naming the setting; check_settings() has reported that.
[[nodiscard]] Result<RedisOptions> redis_target(const RedisSettings& redis);

}  // namespace fcap::updater
