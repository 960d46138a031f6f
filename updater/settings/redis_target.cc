#include "updater/settings/redis_target.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include <fcap/redis_url.h>

#include "redis/redis_options_check.h"

namespace fcap::updater {

Result<RedisOptions> redis_target(const RedisSettings& redis) {
  RedisOptions options;
  options.topology = redis.topology;
  options.addresses = redis.addresses;
  options.sentinel_master = redis.sentinel_master;
  options.sentinel_user = redis.sentinel_user;
  options.sentinel_password = redis.sentinel_password;
  options.user = redis.user;
  options.password = redis.password;
  options.database = static_cast<int>(redis.database);
  options.tls = redis.tls;
  const auto named = [](const std::string& name, const Status& status) {
    return Status::error(status.code(), "redis." + name + status.text());
  };
  if (redis.addresses.front().find("://") != std::string::npos) {
    // A variable's list is split at commas, which a URL with Sentinels has too.
    auto read = parse_redis_url(fmt::format("{}", fmt::join(redis.addresses, ",")), options);
    if (!read.ok()) return named("addresses: ", read.status());
    options = std::move(read).value();
  }
  const auto checked = redis::check_addresses(options);
  if (checked.ok()) return options;
  // The library's option has the setting's name: "redis addresses: …".
  constexpr std::string_view kOptionOf = "redis ";
  const std::string text = checked.status().text();
  return Status::error(checked.status().code(), "redis." + text.substr(kOptionOf.size()));
}

}  // namespace fcap::updater
