#pragma once

#include <chrono>
#include <optional>
#include <stop_token>

#include "updater/settings/load_settings.h"

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

}  // namespace fcap::updater
