#pragma once

#include <memory>
#include <stop_token>

#include <fcap/status.h>
#include <fcap/store.h>

#include "redis/client.h"
#include "updater/compaction/compactor.h"
#include "updater/settings/settings.h"

namespace fcap::updater {

/// `run`: counts events until `stop`. Gives the exit code; trouble is in the log.
int run_command(const Settings& settings, const std::stop_token& stop);

/// Redis as all commands use it.
struct RedisParts {
  std::shared_ptr<redis::Client> client;
  std::unique_ptr<Store> store;
};
[[nodiscard]] Result<RedisParts> connect_redis(const Settings& settings);

/// What compaction is given of the configuration.
[[nodiscard]] Compactor::Options compactor_options(const Settings& settings);

}  // namespace fcap::updater
