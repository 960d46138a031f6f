#pragma once

#include <fcap/status.h>

#include "cli/streams.h"

namespace fcap::cli {

/// Says on standard error what failed; gives the exit code for it.
int fail(Streams streams, const Status& status);

}  // namespace fcap::cli
