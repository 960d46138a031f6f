#pragma once

#include <string>

#include <fcap/redis_options.h>
#include <fcap/status.h>

#include "cli/cli_settings.h"

namespace fcap::cli {

/// Where --redis points to: host:port, a host alone (port 6379), a socket's path, or a URL as in
/// <fcap/redis_url.h>. What a URL says wins over the other settings. Fails on a password in a URL
/// on the command line, where every user of the machine can read it.
Result<RedisOptions> redis_target(const AccessSettings& access, std::string password,
                                  std::string sentinel_password = {});

}  // namespace fcap::cli
