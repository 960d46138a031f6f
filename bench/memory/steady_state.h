#pragma once

#include <chrono>
#include <cstddef>

#include "harness/redis_console.h"

namespace fcap::bench {

inline constexpr std::chrono::days kLifeLength{30};

struct SteadyState {
  std::size_t events = 0;       ///< appended one by one
  std::size_t compactions = 0;  ///< of records that had grown or whose users had become quiet
  std::size_t open_tails = 0;   ///< users whose last events are not compacted in the end
};

/// Lets a population live for thirty days and leaves Redis as the updater would: every event
/// appended, a record compacted when its tail has grown or its user has been quiet for a minute, by
/// the updater's own code on a clock that runs ahead. Users come in bursts: five sessions each, at
/// any time, of six impressions 5 to 55 s apart, three of each of ten campaigns in the end.
///
/// Of the days only the last `lived` are gone through event by event; what came before is written
/// compacted. Quiet again but for those whose session is under way.
SteadyState live_to_steady_state(RedisConsole& console, std::size_t users,
                                 std::chrono::hours lived);

}  // namespace fcap::bench
