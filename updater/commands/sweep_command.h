#pragma once

#include <stop_token>

#include "updater/commands/command_line.h"

namespace fcap::updater {

/// `sweep`: progress on standard error, the summary on standard output. Gives the exit code.
int sweep_command(const Settings& settings, const CommandLine& line, const std::stop_token& stop);

}  // namespace fcap::updater
