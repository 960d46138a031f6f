#pragma once

#include <string>

#include "cli/cli_settings.h"

namespace fcap::cli {

/// What is wrong with options that each by itself is right; empty: nothing.
[[nodiscard]] std::string mistake_in(const CliSettings& settings);

}  // namespace fcap::cli
