#pragma once

#include <stop_token>

#include "updater/settings/settings.h"

namespace fcap::updater {

/// `run`: counts events until `stop`. Gives the exit code; trouble is in the log.
int run_command(const Settings& settings, const std::stop_token& stop);

}  // namespace fcap::updater
