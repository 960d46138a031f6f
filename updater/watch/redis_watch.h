#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <fcap/log.h>

#include "redis/client.h"
#include "updater/watch/redis_facts.h"

namespace fcap::updater {

/// Asks Redis on each connection and every hour whether it is fit to hold records: its version, its
/// role, and whether it evicts. Never blocks.
///
/// Thread safety: poll() from one thread, the rest from any.
class RedisWatch {
 public:
  using Clock = std::chrono::steady_clock;

  RedisWatch(std::shared_ptr<redis::Client> client, LogCallback log);
  /// A pending query completes by itself.
  ~RedisWatch();
  RedisWatch(const RedisWatch&) = delete;
  RedisWatch& operator=(const RedisWatch&) = delete;

  /// Does what is due; to be called every few seconds.
  void poll(Clock::time_point now);

  /// What the server reported last; nullopt: nothing yet.
  [[nodiscard]] std::optional<RedisFacts> facts() const;
  /// What must change, for /readyz: one line each; empty: nothing.
  [[nodiscard]] std::string trouble() const;

 private:
  class Question;

  void take(const Question& question);
  void report(LogLevel level, const std::string& text) const;

  const std::shared_ptr<redis::Client> client_;
  const LogCallback log_;
  std::shared_ptr<Question> question_;  // pending, or ended and not processed yet
  Clock::time_point due_{};
  std::uint64_t epoch_ = 0;
  bool refusal_said_ = false;

  mutable std::mutex mutex_;
  std::optional<RedisFacts> facts_;  // guarded by mutex_
  std::string trouble_;              // guarded by mutex_
};

}  // namespace fcap::updater
