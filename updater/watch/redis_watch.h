#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <fcap/log.h>

#include "redis/client.h"
#include "updater/watch/redis_facts.h"

namespace fcap::updater {

/// Asks Redis on each connection and every hour whether it is fit to hold records: its version, its
/// role, and whether it evicts. In a cluster it asks every master. Never blocks.
///
/// Thread safety: tick() from one thread, the rest from any.
class RedisWatch {
 public:
  using Clock = std::chrono::steady_clock;

  RedisWatch(std::shared_ptr<redis::Client> client, LogCallback log);
  /// Pending queries complete by themselves.
  ~RedisWatch();
  RedisWatch(const RedisWatch&) = delete;
  RedisWatch& operator=(const RedisWatch&) = delete;

  /// Does what is due; to be called every few seconds.
  void tick(Clock::time_point now);

  /// What the server reported last; nullopt: nothing yet. In a cluster, the report of the first
  /// master that may evict, or of the first if none may, but with the evicted keys of all masters.
  [[nodiscard]] std::optional<RedisFacts> facts() const;
  /// What must change, for /readyz: one line each, which names the node in a cluster; empty:
  /// nothing.
  [[nodiscard]] std::string trouble() const;

 private:
  class InfoQuestion;
  // A server that is asked.
  struct WatchedServer {
    std::shared_ptr<InfoQuestion> question = {};  // pending, or ended and not processed yet
    Clock::time_point due = {};
    std::uint64_t epoch = 0;
    bool refusal_said = false;
    std::optional<RedisFacts> facts = {};  // guarded by mutex_
    std::string trouble = {};              // guarded by mutex_
  };

  void follow_nodes();
  void tick_server(const std::string& address, WatchedServer& server, Clock::time_point now);
  void note_answer(const std::string& address, WatchedServer& server, const InfoQuestion& question);
  void report(LogLevel level, const std::string& text) const;

  const std::shared_ptr<redis::Client> client_;
  const LogCallback log_;
  mutable std::mutex mutex_;
  // By address, which is empty where there is only one; changed by tick() only, under mutex_.
  std::map<std::string, WatchedServer> servers_;
};

}  // namespace fcap::updater
