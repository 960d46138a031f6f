#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "updater/commands/command_line.h"
#include "updater/replay/replay.h"
#include "updater/settings/load_settings.h"

/// The subcommands, but for `reference`.
namespace fcap::updater {

struct RunEnd {
  int exit_code = 0;  ///< trouble is in the log
  /// Set: it has stopped since then, to be started again for files that have changed.
  std::optional<std::chrono::steady_clock::time_point> restart_began = {};
};

/// `run`: counts events until `stop`, or until a restart reads what files hold now. `sources` is
/// what `settings` come from.
RunEnd run_command(const Settings& settings, const SettingSources& sources,
                   const std::stop_token& stop);

/// `replay`: progress on standard error, the summary on standard output. Gives the exit code.
int replay_command(const Settings& settings, const CommandLine& line, const std::stop_token& stop);
/// How the process ends after a replay that ended like this.
[[nodiscard]] int exit_code_of(ReplaySummary::ReplayEnd end) noexcept;

/// `sweep`: progress on standard error, the summary on standard output. Gives the exit code.
int sweep_command(const Settings& settings, const CommandLine& line, const std::stop_token& stop);

/// `check-config`: prints what is in effect or, with --connect, what the servers are asked and
/// found to be. Gives the exit code.
int check_command(const LoadedSettings& loaded, const CommandLine& line);

}  // namespace fcap::updater
