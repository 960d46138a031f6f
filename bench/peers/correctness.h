#pragma once

#include <cstddef>

#include "harness/redis_console.h"
#include "peers/layout.h"

namespace fcap::bench {

struct Correctness {
  std::size_t passed = 0;
  std::size_t failed = 0;
  std::size_t skipped = 0;  ///< cases that the layout's semantics do not allow
};

/// Records and asks case by case on an empty database; says each failure on standard error.
Correctness check_correctness(Layout& layout, RedisConsole& console);

}  // namespace fcap::bench
