#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fcap/redis_options.h>

#include "base/clock.h"
#include "redis/config_watch.h"
#include "redis/credentials.h"
#include "redis/log_thinner.h"
#include "redis/missing_times.h"
#include "redis/server_facts.h"

namespace fcap::redis {

class ClusterState;
class Sentinels;

/// What the I/O threads of one Client have in common.
struct SharedState {
  using SteadyTime = std::chrono::steady_clock::time_point;

  explicit SharedState(RedisOptions given) : options(std::move(given)) {}

  void log(LogLevel level, std::string_view text) const {
    if (options.log) options.log(level, text);
  }
  /// Logs the first, second, fourth … line of a kind.
  void log_thinned(LogLevel level, const std::string& text) {
    std::uint64_t count = 0;
    {
      const std::lock_guard lock(error_mutex);
      count = occurrences.note(text, std::chrono::steady_clock::now());
    }
    if (count == 0) return;
    log(level, count == 1 ? text : text + " (" + std::to_string(count) + " times)");
  }
  /// The latest error, which health() keeps through a recovery.
  void note_error(std::string text) {
    const Instant now = base::wall_now();
    const std::lock_guard lock(error_mutex);
    latest_error = std::move(text);
    latest_error_at = now;
  }
  /// Counts replies in which a server reported an error. The text is set under the same lock, so
  /// whoever sees the count sees a text that is at least as new.
  void note_server_errors(std::size_t count, std::string text) {
    const Instant now = base::wall_now();
    const std::lock_guard lock(error_mutex);
    server_errors.fetch_add(count, std::memory_order_relaxed);
    latest_error = std::move(text);
    latest_error_at = now;
  }
  /// Notes why a connection is missing. `link`: whose it is; null: of no single link.
  void set_last_error(std::string text, const void* link) {
    note_error(text);
    const std::lock_guard lock(error_mutex);
    last_error = std::move(text);
    last_error_of = link;
  }
  /// The connection of `link` is there again. In a cluster an error of another link stays, because
  /// that one may still lack its own.
  void clear_last_error(const void* link) {
    const std::lock_guard lock(error_mutex);
    if (cluster == nullptr || last_error_of == nullptr || last_error_of == link) last_error.clear();
  }
  /// What a server's clock shows; of several servers, that of the one which is furthest off, as
  /// long as it is heard of. With error_mutex.
  void take_clock(const std::string& place, const ServerFacts& told, SteadyTime now) {
    const auto& difference = told.clock_difference;
    const auto off = [](const auto& by) { return by ? std::chrono::abs(*by).count() : -1; };
    const bool is_other = place != clock_of && now - clock_heard_at < kClockForgottenAfter;
    if (is_other && off(difference) <= off(facts.clock_difference)) return;
    clock_of = place;
    clock_heard_at = now;
    facts.clock_difference = difference;
    facts.clock_text = told.clock_text;
    clock_base_ms.store(difference ? difference->count() + wall_base_ms() : kNotKnown,
                        std::memory_order_relaxed);
  }
  /// The server's clock minus this machine's, which may have been set since they were compared;
  /// nullopt: not known. Takes no lock.
  [[nodiscard]] std::optional<std::chrono::milliseconds> clock_difference() const noexcept {
    const std::int64_t base_ms = clock_base_ms.load(std::memory_order_relaxed);
    if (base_ms == kNotKnown) return std::nullopt;
    return std::chrono::milliseconds{base_ms - wall_base_ms()};
  }
  /// What this machine's clock showed when its steady one, which nobody sets, began.
  [[nodiscard]] static std::int64_t wall_base_ms() noexcept {
    const auto steady = std::chrono::steady_clock::now().time_since_epoch();
    return to_ms(base::wall_now()) - std::chrono::floor<std::chrono::milliseconds>(steady).count();
  }
  [[nodiscard]] bool is_gap_stated() const noexcept { return missing.latest().has_value(); }
  /// What was read of the configuration says nothing any more. Whoever can read it does so at once:
  /// only the first time, since one who cannot would try again without a pause. With error_mutex.
  void forget_config() {
    if (config.has_reply()) config_generation.fetch_add(1, std::memory_order_relaxed);
    config.forget();
    publish_config();
  }
  /// What `config` says, to those who cannot take a lock. With error_mutex.
  void publish_config() {
    missing.set(config.missing());
    const WriteTerms& terms = config.terms();
    record_bytes_max.store(terms.record_bytes_max, std::memory_order_relaxed);
    reservation_life_max_ms.store(terms.reservation_life_max.count(), std::memory_order_relaxed);
    config_read.store(config.has_reply(), std::memory_order_relaxed);
  }

  // Operations that were submitted and have not left yet. All threads write it: otherwise its cache
  // line has only the beginning of the options, which is read when connecting.
  alignas(64) std::atomic<std::size_t> operations{0};
  const RedisOptions options;
  // Set before the threads start: who tells where the master is; null with topology single.
  Sentinels* sentinels = nullptr;
  ClusterState* cluster = nullptr;  // set before the threads start; null with other topologies
  Credentials credentials;          // started before the threads
  std::atomic<std::uint64_t> epoch{0};
  std::atomic<std::size_t> links_ready{0};
  // Written only when something went wrong, so that they cost nothing on the usual path.
  std::atomic<std::size_t> breakers_open{0};
  std::atomic<std::uint64_t> breaker_openings{0};
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> reconnects{0};
  std::atomic<std::uint64_t> server_errors{0};
  std::atomic<std::uint64_t> timeouts{0};
  std::atomic<std::uint64_t> failures{0};
  std::atomic<std::uint64_t> own_stalls{0};
  std::atomic<std::uint64_t> replica_reads{0};
  std::atomic<std::size_t> replicas_read{0};  // links whose reads go to a replica now
  std::atomic<bool> stopping{false};
  std::atomic<bool> direct_stopping{false};
  std::atomic<std::size_t> links_made{0};
  // Grows when what is expected of the configuration changes.
  std::atomic<std::uint64_t> config_generation{0};
  // Until then it is looked at every second, because some server was connected to lately.
  std::atomic<std::chrono::steady_clock::time_point> loss_looks_until{};
  // From `config`, for readers that cannot take a lock; set with error_mutex.
  MissingTimes missing;
  // Servers are asked for their clocks every minute: one answer may be missed.
  static constexpr std::chrono::seconds kClockForgottenAfter{150};
  // Likewise, for write_terms().
  std::atomic<bool> config_read{false};
  std::atomic<std::int64_t> reservation_life_max_ms{0};
  std::atomic<std::size_t> record_bytes_max{kDefaultRecordBytesMax};
  // What the server's clock showed when this machine's steady one began.
  static constexpr std::int64_t kNotKnown = std::numeric_limits<std::int64_t>::min();
  std::atomic<std::int64_t> clock_base_ms{kNotKnown};
  mutable std::mutex error_mutex;
  std::string last_error;                  // guarded by error_mutex
  const void* last_error_of = nullptr;     // guarded by error_mutex
  std::string clock_of;                    // guarded by error_mutex
  SteadyTime clock_heard_at;               // guarded by error_mutex
  std::string latest_error;                // guarded by error_mutex
  std::optional<Instant> latest_error_at;  // guarded by error_mutex
  std::string replica_text = "none";       // guarded by error_mutex
  LogThinner occurrences;                  // guarded by error_mutex
  ServerFacts facts;                       // guarded by error_mutex
  ConfigWatch config;                      // guarded by error_mutex
};

}  // namespace fcap::redis
