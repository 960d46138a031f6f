#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include <fcap/store.h>

#include "events/event_decoder.h"
#include "redis/client.h"
#include "updater/metrics/metrics.h"
#include "updater/metrics/updater_health.h"
#include "updater/pipeline/dead_letter_producer.h"
#include "updater/pipeline/updater.h"
#include "updater/watch/topic_watch.h"

namespace fcap::testing {

/// The write path on a thread of this process, over a real Redis and a real Kafka. Stops (drained,
/// committed, out of the group) when stopped or destroyed.
class RunningUpdater {
 public:
  struct Options {
    std::string brokers;
    std::string redis_address;  ///< or a URL
    std::string redis_user;     ///< empty: the default user
    std::string redis_password;
    std::string topic;
    std::string dead_letter_topic;  ///< empty: rejected messages are only counted
    std::string group_id = "fcap-test";
    std::string group_instance_id;
    events::EventDecoder* decoder = nullptr;  ///< null: of JSON
    /// What the test wants otherwise than the defaults.
    updater::UpdaterOptions updater;
    updater::TopicWatchOptions watch;
  };

  /// Throws when it cannot start.
  explicit RunningUpdater(const Options& options);
  ~RunningUpdater();
  RunningUpdater(const RunningUpdater&) = delete;
  RunningUpdater& operator=(const RunningUpdater&) = delete;

  void stop();

  [[nodiscard]] const updater::Metrics& metrics() const noexcept { return metrics_; }
  [[nodiscard]] Store& store() noexcept { return *store_; }
  /// Whether run() has ended by itself or was stopped.
  [[nodiscard]] bool ended() const noexcept { return ended_.load(); }
  /// What /readyz would say; empty: ready.
  [[nodiscard]] std::string not_ready() const;
  /// Whether the main loop has run within ten seconds: what /healthz would say on a busy machine.
  [[nodiscard]] bool healthy() const { return health_.healthy(updater::Health::Clock::now()); }
  /// How often the main loop has looked at Kafka's state and at the clocks: twice a second, and
  /// what it has found is in metrics(), not_ready() and log() by then. For a test that waits for
  /// the updater to have noticed something, or nothing. While nothing is known of Redis' clock,
  /// batches count as well.
  [[nodiscard]] std::uint64_t looks() const noexcept { return looks_.load(); }
  [[nodiscard]] updater::Lag lag() const;
  [[nodiscard]] bool kafka_connected() const;
  /// Everything that the updater has logged at warning or above.
  [[nodiscard]] std::string log() const;

 private:
  struct Log;
  std::shared_ptr<Log> log_;
  updater::Metrics metrics_;
  updater::Health health_{std::chrono::seconds{10}};
  std::shared_ptr<redis::Client> client_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<events::EventDecoder> decoder_;
  std::unique_ptr<updater::DeadLetterProducer> dead_letters_;
  std::unique_ptr<updater::TopicWatch> watch_;
  std::unique_ptr<updater::Updater> updater_;
  std::atomic<std::uint64_t> looks_{0};
  std::atomic<bool> ended_{false};
  std::jthread thread_;
};

}  // namespace fcap::testing
