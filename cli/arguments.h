#pragma once

#include <optional>

#include "cli/cli_settings.h"
#include "cli/streams.h"

namespace fcap::cli {

/// Reads the command line into `settings`. A value: the process ends with it (help, version or a
/// mistake, which has been printed).
std::optional<int> parse_command_line(int argc, const char* const* argv, CliSettings& settings,
                                      Streams streams);

}  // namespace fcap::cli
