#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "impression_producer.h"
#include "live_counters.h"

namespace ad_server {

/// What a run did, as this side of it knows.
struct Summary {
  double seconds = 0;
  std::string user_prefix = {};
  std::string topic = {};
  /// The offset behind each partition's last message before and after the run.
  std::vector<std::int64_t> begin_offsets = {};
  std::vector<std::int64_t> end_offsets = {};
  bool drained = false;
};

/// One JSON object with the summary and the counters.
std::string to_json(const Summary& summary, const LiveCounters& counters,
                    const ImpressionProducer& producer);

}  // namespace ad_server
