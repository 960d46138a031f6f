#pragma once

#include <fcap/redis_options.h>

#include "redis/address.h"

namespace fcap::redis {

/// The one address of the options, or the first thing that is wrong with them, naming the option.
[[nodiscard]] Result<Address> check_options(const RedisOptions& options);

}  // namespace fcap::redis
