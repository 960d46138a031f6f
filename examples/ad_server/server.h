#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <fcap/checker.h>

#include "beacons.h"
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
  kPage,     ///< the same, and all slots of a page are filled in one call
  kReserve,  ///< it is reserved before it is shown, so that no cap is exceeded
};

/// Answers page views: asks libfcap which ads may be shown, shows the first of them, and publishes
/// the impression.
class Server {
 public:
  struct ServerParts {
    fcap::Checker& checker;
    ImpressionProducer& producer;
    Traffic& traffic;
    LiveCounters& counters;
    const ImpressionIds& ids;
    Tier tier = Tier::kLocal;
  };

  Server(const ServerParts& parts, std::string run_id)
      : parts_(parts), run_id_(std::move(run_id)) {}

  /// Serves one worker's page views until there are no more or `stop` is set.
  void serve(std::size_t worker, const std::atomic<bool>& stop);

  /// Waits until the last impression has been published.
  void finish() { beacons_.finish(); }

 private:
  using Delay = Beacons::Clock::duration;
  struct ShownOffer {
    std::string user;
    AdOffer offer;
    std::string id;
    fcap::Instant at;
    fcap::Reason reason;  ///< of the check that let it through
  };

  void answer(const AdRequest& request, const std::string& plain_id);
  void answer_page(const AdRequest& request, const std::string& plain_id);
  [[nodiscard]] std::optional<std::string> make_id(const AdRequest& request, const AdOffer& offer,
                                                   fcap::Instant at, const std::string& plain_id);
  [[nodiscard]] bool claim(const AdRequest& request, const AdOffer& offer, const std::string& id,
                           const fcap::CheckResult& check, fcap::Instant& at);
  void show(ShownOffer shown, Delay beacon);
  void publish(const ShownOffer& shown);
  void give_back(const ShownOffer& shown);
  void count_check(Beacons::Clock::time_point begin);

  ServerParts parts_;
  std::string run_id_;
  Beacons beacons_;  // uses the others
};

}  // namespace ad_server
