#pragma once

#include "harness/redis_console.h"
#include "peers/layout.h"

namespace fcap::bench {

/// Records and asks case by case on an empty database, and counts those that "passed", "failed" or
/// were "skipped" because the layout's semantics do not allow them. Says each failure on standard
/// error.
Numbers check_correctness(Layout& layout, RedisConsole& console);

}  // namespace fcap::bench
