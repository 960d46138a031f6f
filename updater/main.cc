#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>
#include <stop_token>
#include <utility>

#include <fmt/core.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/outside_text.h"
#include "kafka/kafka_client.h"
#include "updater/commands/commands.h"
#include "updater/metrics/exposition.h"
#include "updater/process/process_log.h"
#include "updater/process/start_again.h"
#include "updater/process/stop_signals.h"
#include "updater/settings/load_settings.h"
#include "updater/settings/reference.h"
#include "updater/settings/updater_man_page.h"

namespace fcap::updater {
namespace {

int print_reference(const std::string& page) {
  fmt::print("{}", page == "configuration"       ? configuration_reference()
                   : page == "metrics"           ? metrics_reference()
                   : page == "man-configuration" ? configuration_man_page()
                                                 : sample_configuration());
  return kExitOk;
}

int refuse(const Status& mistakes) {
  fmt::print(stderr, "fcap-updater: the configuration has mistakes:\n{}\n",
             base::printable_lines(mistakes.text()));
  return kExitUsage;
}

int work(const CommandLine& line, char* const* arguments) {
  using Command = CommandLine::Command;
  if (line.command == Command::kReference) return print_reference(line.page);
  const auto loaded = load_settings(line.sources);
  if (!loaded.ok()) return refuse(loaded.status());
  if (line.command == Command::kCheckConfig) {
    return check_command(loaded.value(), line);
  }
  const Settings& settings = loaded.value().settings;
  configure_logging(settings.log);
  std::optional<StopSignals> signals(std::in_place);
  const std::stop_token stop = signals->token();
  switch (line.command) {
    case Command::kReplay:
      return replay_command(settings, line, stop);
    case Command::kSweep:
      return sweep_command(settings, line, stop);
    default: {
      const RunEnd end = run_command(settings, line.sources, stop);
      signals.reset();  // a signal from here on is for the next start, which then stops
      if (!end.restart_began || stop.stop_requested()) return end.exit_code;
      return start_again(arguments, *end.restart_began);
    }
  }
}

}  // namespace
}  // namespace fcap::updater

int main(int argc, char** argv) {
  try {
    ::prctl(PR_SET_NAME, program_invocation_short_name);  // it is "exe" after start_again()
    int exit_code = 0;
    const auto line = fcap::updater::parse_command_line(argc, argv, exit_code);
    if (line) exit_code = fcap::updater::work(*line, argv);
    if (fcap::kafka::KafkaClient::is_left_behind()) {
      std::fflush(nullptr);
      _exit(exit_code);
    }
    return exit_code;
  } catch (const std::exception& error) {
    // Only running out of memory or threads comes this far.
    std::fprintf(stderr, "fcap-updater: %s\n", error.what());
    return fcap::updater::kExitFailure;
  }
}
