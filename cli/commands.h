#pragma once

#include "cli/cli_settings.h"
#include "cli/streams.h"

/// The subcommands. Each gives an ExitCode and says on standard error why it failed.
namespace fcap::cli {

int run_check(const CliSettings& settings, Streams streams);
int run_show(const CliSettings& settings, Streams streams);
int run_explain(const CliSettings& settings, Streams streams);
int run_rules(const CliSettings& settings, Streams streams);
int run_audit(const CliSettings& settings, Streams streams);
int run_simulate(const CliSettings& settings, Streams streams);
int run_erase(const CliSettings& settings, Streams streams);

/// The whole program.
int run(int argc, const char* const* argv, Streams streams);

}  // namespace fcap::cli
