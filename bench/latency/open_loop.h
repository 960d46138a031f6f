#pragma once

#include <fcap/checker.h>

#include "harness/durations.h"
#include "path/check_load.h"

namespace fcap::bench {

/// What checks at a fixed rate took.
struct OpenLoopResult {
  Durations latency;  ///< from the intended start of each check to its answer
  double answered_per_second = 0;
  double failed = 0;       ///< answered without the history
  bool sustained = false;  ///< the checks of the last instant were under way soon after it
};

/// Starts checks at a fixed rate whatever becomes of the earlier ones, as users do, and takes each
/// one's time from when it should have started: a stall costs all checks that fell into it, not
/// only the one that was under way (coordinated omission).
OpenLoopResult run_open_loop(Checker& checker, const CheckWorkload& workload, double per_second,
                             double seconds);

/// How late a thread wakes up that waits for a timer and has its core to itself: what the machine
/// adds to anything that waits, however little there is to do.
Durations timer_lateness(double seconds);

}  // namespace fcap::bench
