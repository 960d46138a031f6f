#include "cli/redis_access.h"

#include <cstdlib>
#include <utility>

#include <fcap/redis_url.h>

namespace fcap::cli {
namespace {

Status wrong_redis(const std::string& why) {
  return Status::error(StatusCode::kInvalidArgument,
                       "--redis (FCAP_REDIS): " + why +
                           "; write host:port, a socket's path, "
                           "redis://[user[:password]@]host[:port][/database], "
                           "redis-sentinel://[user[:password]@]host[:port],…/master[/database] or "
                           "redis-cluster://[user[:password]@]host[:port],…");
}

// Whether a password stands in what every user of the machine can read.
bool tells_password(const std::string& redis) {
  const auto alone = parse_redis_url(redis);
  if (!alone.ok() || alone.value().password.empty()) return false;
  const char* variable = std::getenv("FCAP_REDIS");  // NOLINT(concurrency-mt-unsafe)
  return variable == nullptr || redis != variable;
}

}  // namespace

Result<RedisOptions> redis_target(const AccessSettings& access, std::string password,
                                  std::string sentinel_password) {
  RedisOptions options;
  options.user = access.redis_user;
  options.password = std::move(password);
  options.database = access.redis_database;
  options.sentinel_user = access.redis_sentinel_user;
  options.sentinel_password = std::move(sentinel_password);
  options.tls = access.redis_tls;
  options.value_bytes_max = std::size_t{64} << 20U;  // whoever asks by hand wants to see it
  if (tells_password(access.redis)) {
    return wrong_redis(
        "a password on the command line can be read by every user of the machine: use "
        "--redis-password-file, FCAP_REDIS_PASSWORD, or the URL in FCAP_REDIS");
  }
  auto target = parse_redis_url(access.redis, std::move(options));
  if (!target.ok()) return wrong_redis(target.status().text());
  return target;
}

}  // namespace fcap::cli
