#include "updater/commands/redis_parts.h"

#include <utility>

#include <fmt/core.h>

#include "updater/options/libraries.h"
#include "updater/process/process_log.h"

namespace fcap::updater {

Result<RedisParts> connect_redis(const Settings& settings, redis::Deadlines deadlines) {
  auto client = redis::Client::create(redis_options(settings, log_callback("redis")));
  if (!client.ok()) return client.status();
  RedisParts parts;
  parts.client = std::move(client).value();
  parts.store = redis::make_redis_store(parts.client, deadlines);
  return parts;
}

std::string redis_trouble(const redis::Client& client) {
  if (client.connected()) return {};
  const std::string why = client.last_error();
  return fmt::format("redis: not connected{}{}", why.empty() ? "" : ": ", why);
}

}  // namespace fcap::updater
