#pragma once

#include <atomic>
#include <cstddef>
#include <string>

#include <fcap/checker.h>

#include "impression_ids.h"
#include "impression_producer.h"
#include "live_counters.h"
#include "traffic.h"

namespace ad_server {

/// Answers page views: asks libfcap which ads may be shown, shows the first of them, and publishes
/// the impression.
class Server {
 public:
  struct Parts {
    fcap::Checker& checker;
    ImpressionProducer& producer;
    Traffic& traffic;
    LiveCounters& counters;
    const ImpressionIds& ids;
    bool note_shown = true;
  };

  Server(const Parts& parts, std::string run_id) : parts_(parts), run_id_(std::move(run_id)) {}

  /// Serves one worker's page views until there are no more or `stop` is set.
  void serve(std::size_t worker, const std::atomic<bool>& stop);

 private:
  void answer(const AdRequest& request, const std::string& plain_id);

  Parts parts_;
  std::string run_id_;
};

}  // namespace ad_server
