#pragma once

#include "cli/cli_settings.h"
#include "cli/streams.h"

/// The subcommands. Each gives an ExitCode and says on standard error why it failed.
namespace fcap::cli {

int run_check(const Settings& settings, Streams streams);
int run_show(const Settings& settings, Streams streams);
int run_explain(const Settings& settings, Streams streams);
int run_rules(const Settings& settings, Streams streams);
int run_audit(const Settings& settings, Streams streams);
int run_simulate(const Settings& settings, Streams streams);
int run_erase(const Settings& settings, Streams streams);

/// The whole program.
int run(int argc, const char* const* argv, Streams streams);

}  // namespace fcap::cli
