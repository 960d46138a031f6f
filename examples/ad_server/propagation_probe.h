#pragma once

#include <atomic>
#include <string>

#include <fcap/checker.h>

#include "impression_ids.h"
#include "impression_producer.h"
#include "live_counters.h"

namespace ad_server {

/// Measures how long an impression takes from being produced to being seen by a check: shows a
/// fresh user the one impression that a campaign's cap admits, and asks until the campaign is
/// capped.
class PropagationProbe {
 public:
  struct Options {
    std::string user_prefix;
    /// A campaign with the cap "1 per any window of a minute or more".
    std::string campaign;
  };

  PropagationProbe(fcap::Checker& checker, ImpressionProducer& producer, LiveCounters& counters,
                   const ImpressionIds& ids, Options options)
      : checker_(checker),
        producer_(producer),
        counters_(counters),
        ids_(ids),
        options_(std::move(options)) {}

  /// About ten probes a second until `stop` is set.
  void run(const std::atomic<bool>& stop);

 private:
  void probe(const std::string& user, const std::atomic<bool>& stop);

  fcap::Checker& checker_;
  ImpressionProducer& producer_;
  LiveCounters& counters_;
  const ImpressionIds& ids_;
  Options options_;
};

}  // namespace ad_server
