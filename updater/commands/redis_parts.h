#pragma once

#include <memory>
#include <string>

#include <fcap/status.h>
#include <fcap/store.h>

#include "redis/client.h"
#include "redis/redis_store.h"
#include "updater/settings/settings.h"

namespace fcap::updater {

/// Redis as all commands use it.
struct RedisParts {
  std::shared_ptr<redis::Client> client;
  std::unique_ptr<Store> store;
};
[[nodiscard]] Result<RedisParts> connect_redis(
    const Settings& settings, redis::Deadlines deadlines = redis::Deadlines::kTotal);

/// Why there is no connection, with the server's or the network's words; empty: there is one.
[[nodiscard]] std::string redis_trouble(const redis::Client& client);

}  // namespace fcap::updater
