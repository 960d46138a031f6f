#pragma once

#include <string>

#include <fcap/status.h>

#include "cli/streams.h"

namespace fcap::cli {

/// A mistake of whoever calls the command; `text` begins with the argument's name.
[[nodiscard]] Status wrong(std::string text);

/// Says on standard error what failed; gives the exit code for it.
int fail(Streams streams, const Status& status);

}  // namespace fcap::cli
