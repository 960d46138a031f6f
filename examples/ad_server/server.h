#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fcap/checker.h>

#include "impression_ids.h"
#include "impression_producer.h"
#include "live_counters.h"
#include "traffic.h"

namespace ad_server {

/// How much a shown impression counts before it has come back through Kafka.
enum class Tier : std::uint8_t {
  kNothing,  ///< not at all
  kLocal,    ///< in this process: note_shown()
  kShared,   ///< on all servers, from their next read on
  kReserve,  ///< it is reserved before it is shown, so that no cap is exceeded
};

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
    Tier tier = Tier::kLocal;
  };

  Server(const Parts& parts, std::string run_id) : parts_(parts), run_id_(std::move(run_id)) {}

  /// Serves one worker's page views until there are no more or `stop` is set.
  void serve(std::size_t worker, const std::atomic<bool>& stop);

 private:
  void answer(const AdRequest& request, const std::string& plain_id);
  [[nodiscard]] bool claim(const AdRequest& request, const AdOffer& offer, const std::string& id,
                           const fcap::CheckResult& check, fcap::Instant& at);
  void show(const AdRequest& request, const AdOffer& offer, const std::string& id,
            const fcap::CheckResult& check, fcap::Instant at);
  void give_back(const AdRequest& request, const AdOffer& offer, const std::string& id);

  Parts parts_;
  std::string run_id_;
};

}  // namespace ad_server
