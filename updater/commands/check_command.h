#pragma once

#include "updater/commands/command_line.h"
#include "updater/settings/load_settings.h"

namespace fcap::updater {

/// `check-config`: prints what is in effect or, with --connect, what the servers are asked and
/// found to be. Gives the exit code.
int check_command(const LoadedSettings& loaded, const CommandLine& line);

}  // namespace fcap::updater
