#pragma once

#include "harness/latency_histogram.h"

namespace fcap::bench {

/// How late a thread wakes up that waits for a timer and has its core to itself: what the machine
/// adds to anything that waits, however little there is to do.
LatencyHistogram timer_lateness(double seconds);

}  // namespace fcap::bench
