#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <fcap/redis_options.h>
#include <fcap/store.h>

#include "redis/config_record.h"

namespace fcap::updater {

/// Keeps `<prefix>:!config` in the store: how this updater is set, for Checkers to compare
/// themselves with. Written at the start where it is missing or says something else, and again
/// where it has gone missing since (a Redis that lost its data). Never blocks.
///
/// Thread safety: poll() from one thread. The store must outlive it; an operation under way at its
/// end completes by itself.
class ConfigPublisher {
 public:
  using Clock = std::chrono::steady_clock;

  ConfigPublisher(Store& store, const redis::ConfigRecord& record, LogCallback log);
  ~ConfigPublisher();
  ConfigPublisher(const ConfigPublisher&) = delete;
  ConfigPublisher& operator=(const ConfigPublisher&) = delete;

  /// Does what is due; to be called every few seconds.
  void poll(Clock::time_point now);

 private:
  class Call;

  void take(const Call& call);
  void write(const std::string* found);

  Store* store_;
  const std::string key_;
  const std::string text_;
  const LogCallback log_;
  std::shared_ptr<Call> call_;  // under way, or ended and not looked at
  bool writing_ = false;
  bool settled_ = false;  // whether it has been written or found right since the start
  Clock::time_point look_at_{};
  Clock::time_point extend_at_{};
};

}  // namespace fcap::updater
