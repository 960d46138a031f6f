#pragma once

#include <stop_token>

#include "updater/commands/command_line.h"
#include "updater/replay/replay.h"

namespace fcap::updater {

/// `replay`: progress on standard error, the summary on standard output. Gives the exit code.
int replay_command(const Settings& settings, const CommandLine& line, const std::stop_token& stop);

/// How the process ends after a replay that ended like this.
[[nodiscard]] int exit_code_of(ReplaySummary::ReplayEnd end) noexcept;

}  // namespace fcap::updater
