#include <cstdio>
#include <exception>

#include <fmt/core.h>

#include "updater/command_line.h"
#include "updater/compaction/sweep_command.h"
#include "updater/log.h"
#include "updater/metrics/exposition.h"
#include "updater/replay_command.h"
#include "updater/run_command.h"
#include "updater/settings/load.h"
#include "updater/settings/reference.h"
#include "updater/stop_signals.h"

namespace fcap::updater {
namespace {

int print_reference(const std::string& page) {
  fmt::print("{}", page == "configuration" ? configuration_reference()
                   : page == "metrics"     ? metrics_reference()
                                           : sample_configuration());
  return kExitOk;
}

int work(const CommandLine& line) {
  using Command = CommandLine::Command;
  if (line.command == Command::kReference) return print_reference(line.page);
  const auto loaded = load_settings(line.sources);
  if (!loaded.ok()) {
    fmt::print(stderr, "fcap-updater: the configuration has mistakes:\n{}\n",
               loaded.status().text());
    return kExitUsage;
  }
  if (line.command == Command::kCheckConfig) {
    fmt::print("{}", effective_configuration(loaded.value(), line.json));
    return kExitOk;
  }
  const Settings& settings = loaded.value().settings;
  configure_logging(settings.log);
  const StopSignals signals;
  switch (line.command) {
    case Command::kReplay:
      return replay_command(settings, line, signals.token());
    case Command::kSweep:
      return sweep_command(settings, line, signals.token());
    default:
      return run_command(settings, signals.token());
  }
}

}  // namespace
}  // namespace fcap::updater

int main(int argc, char** argv) {
  try {
    int exit_code = 0;
    const auto line = fcap::updater::parse_command_line(argc, argv, exit_code);
    return line ? fcap::updater::work(*line) : exit_code;
  } catch (const std::exception& error) {
    // Only running out of memory or threads comes this far.
    std::fprintf(stderr, "fcap-updater: %s\n", error.what());
    return fcap::updater::kExitFailure;
  }
}
