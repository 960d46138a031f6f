#pragma once

#include <string>
#include <vector>

#include <fcap/redis_options.h>

#include "redis/address.h"

namespace fcap::redis {

/// The addresses of the options (the server's or the Sentinels'), or the first thing that is wrong
/// with the options, naming the one to change.
[[nodiscard]] Result<std::vector<Address>> check_options(const RedisOptions& options);
/// Checks topology, addresses and the master's name only.
[[nodiscard]] Result<std::vector<Address>> check_addresses(const RedisOptions& options);

/// Where the options point to, for people: "cache1:6379", or "caps of the Sentinels s1:26379, …",
/// "the cluster of n1:6379, …".
[[nodiscard]] std::string place_of(const RedisOptions& options);

}  // namespace fcap::redis
