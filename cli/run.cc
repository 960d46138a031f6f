#include <exception>
#include <ostream>

#include "cli/arguments.h"
#include "cli/commands.h"

namespace fcap::cli {
namespace {

int run_command(const CliSettings& settings, Streams streams) {
  switch (settings.command) {
    case CliSettings::Subcommand::kCheck:
      return run_check(settings, streams);
    case CliSettings::Subcommand::kShow:
      return run_show(settings, streams);
    case CliSettings::Subcommand::kExplain:
      return run_explain(settings, streams);
    case CliSettings::Subcommand::kRules:
      return run_rules(settings, streams);
    case CliSettings::Subcommand::kAudit:
      return run_audit(settings, streams);
    case CliSettings::Subcommand::kSimulate:
      return run_simulate(settings, streams);
    case CliSettings::Subcommand::kErase:
      return run_erase(settings, streams);
    case CliSettings::Subcommand::kNone:
      break;
  }
  return kExitUsage;
}

}  // namespace

int run(int argc, const char* const* argv, Streams streams) {
  try {
    CliSettings settings;
    if (const auto ended = parse_command_line(argc, argv, settings, streams)) return *ended;
    const int code = run_command(settings, streams);
    streams.out.flush();
    if (streams.out) return code;
    streams.err << "fcap: standard output cannot be written\n";
  } catch (const std::exception& failure) {
    streams.err << "fcap: " << failure.what() << "\n";
  }
  return kExitFailure;
}

}  // namespace fcap::cli
