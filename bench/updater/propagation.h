#pragma once

#include <cstddef>
#include <string>

#include "updater/running_updater.h"

namespace fcap::bench {

struct PropagationOptions {
  std::string topic;
  double rate = 0;  ///< events per second
  double seconds = 0;
  /// Before that: the broker compiles itself.
  double warm_up_seconds = 0;
  std::size_t users = 0;
};

/// How long an event takes from the producer to a reader: impressions are produced at a fixed rate;
/// some are of users of their own, and these users' records are asked for until they are there.
/// Times run from when a message was due, not from when it could be sent (no coordinated omission).
Numbers measure_propagation(const Servers& servers, const PropagationOptions& options);

}  // namespace fcap::bench
