#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fcap/time.h>

#include "updater/replay/flags.h"
#include "updater/settings/load_settings.h"

namespace fcap::updater {

/// Exit codes of fcap-updater; docs/operations.md explains them.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  ///< it could not start or continue
inline constexpr int kExitUsage = 2;    ///< the command line or the configuration is wrong
inline constexpr int kExitStopped = 3;  ///< replay, sweep: ended by a signal before their end
inline constexpr int kExitMemory = 4;   ///< replay: Redis uses more memory than allowed
inline constexpr int kExitLost = 5;     ///< replay: Redis lost some of it again and again

/// What is to be done.
struct CommandLine {
  enum class Command : std::uint8_t { kRun, kReplay, kSweep, kCheckConfig, kReference };

  Command command = Command::kRun;
  /// Where settings come from besides the file: the command line and the process's environment.
  SettingSources sources;
  bool json = false;
  bool quiet = false;
  bool connect = false;  ///< `check-config`: ask the servers
  ReplayFlags replay;
  std::string page;  ///< of `reference`
};

/// Reads the command line. None: everything is said (help, version, a mistake), and the process is
/// to end with `exit_code`.
[[nodiscard]] std::optional<CommandLine> parse_command_line(int argc, const char* const* argv,
                                                            int& exit_code);

/// "2026-03-01T00:00:00Z", milliseconds since 1970 ("1700000000000"), "now", or a length of time
/// before now ("-24h").
[[nodiscard]] std::optional<Instant> parse_time_flag(std::string_view text, Instant now);

}  // namespace fcap::updater
