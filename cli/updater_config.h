#pragma once

#include <functional>
#include <string>

#include <fcap/status.h>

#include "cli/cli_settings.h"

namespace fcap::cli {

/// Takes from fcap-updater's configuration file what the command line and the environment leave
/// open: Redis, PostgreSQL, Kafka, key prefix, retention and null user ids. `given` says whether an
/// option, such as "--redis", was set. Fails with every mistake of the file, as check-config would.
Status take_updater_config(const std::string& path,
                           const std::function<bool(const char* option)>& given,
                           CliSettings& settings);

}  // namespace fcap::cli
