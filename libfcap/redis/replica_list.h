#pragma once

#include <string>
#include <vector>

#include <fcap/status.h>

#include "redis/address.h"
#include "redis/reply.h"

namespace fcap::redis {

/// A replica that can be connected to, and its host as it was named.
struct KnownReplica {
  Endpoint endpoint;
  std::string host;
};

/// What a Sentinel says to SENTINEL REPLICAS: the addresses of those that it does not take to be
/// down, or why there is no answer, naming what to change. Free of I/O.
[[nodiscard]] Result<std::vector<Address>> read_replica_addresses(const Reply& reply);

}  // namespace fcap::redis
