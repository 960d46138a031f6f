#pragma once

#include <memory>

#include <fcap/store.h>

#include "redis/client.h"

namespace fcap::redis {

/// The Store over a Client. Writes are APPEND, then PEXPIREAT if the expiry is not known to be late
/// enough (AppendsOperation), so that a record never stays without one; compare-and-set is one
/// script, EVALSHA with EVAL on NOSCRIPT, that compares and stores bytes and knows no rule.
[[nodiscard]] std::unique_ptr<Store> make_redis_store(std::shared_ptr<Client> client);

}  // namespace fcap::redis
