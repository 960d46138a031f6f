#pragma once

#include <fcap/checker.h>

namespace fcap::checker {

/// Sets `ready` and `problems` by the rest. Throws std::bad_alloc.
void judge_health(CheckerHealth& health);

}  // namespace fcap::checker
