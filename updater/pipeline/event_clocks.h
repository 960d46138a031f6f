#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include <fcap/log.h>
#include <fcap/time.h>

#include "updater/pipeline/intake.h"

namespace fcap::updater {

/// The clocks that the times of events are compared with: this machine's, Redis' and the brokers'.
/// Notices when Redis' clock and this machine's differ, and when Redis' was so far ahead that
/// records may have expired too early.
///
/// Thread safety: one thread.
class EventClocks {
 public:
  /// Redis' clock minus this machine's, as last compared; nullopt: it is not known.
  using RedisClock = std::function<std::optional<std::chrono::milliseconds>()>;

  /// `redis_clock` may be empty. Clocks differ if by more than `future_allowed`, which is
  /// IntakeOptions::future_allowed.
  EventClocks(RedisClock redis_clock, std::chrono::milliseconds future_allowed, LogCallback log)
      : redis_clock_(std::move(redis_clock)),
        future_allowed_(future_allowed),
        log_(std::move(log)) {}

  /// A message was read that is of `timestamp_ms`, below 0 if it has no timestamp. `by_broker`:
  /// that is when the broker stored it.
  void note_message(std::int64_t timestamp_ms, bool by_broker) noexcept;
  /// Compares the clocks of Redis and of this machine. True: Redis' was far ahead, and no longer
  /// is.
  bool compare();
  /// While Redis' clock and this machine's differ, by how much; otherwise empty.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

  [[nodiscard]] IntakeClocks now();
  /// The time at Redis, which judges expiries by its clock.
  [[nodiscard]] Instant redis_now() const noexcept;
  /// Later than any event that is accepted now, and the same for a second, because each change is
  /// written.
  [[nodiscard]] Instant after_all_events();

 private:
  RedisClock redis_clock_;
  std::chrono::milliseconds future_allowed_;
  LogCallback log_;
  std::int64_t newest_message_ms_ = 0;        // 0: no message had a timestamp yet
  std::int64_t newest_append_ms_ = 0;         // the same of the broker's own clock
  std::chrono::milliseconds redis_ahead_{0};  // of this machine's clock
  bool compared_ = false;                     // redis_ahead_ is known
  bool expiries_doubted_ = false;             // Redis' clock was, or is, far ahead
  std::string trouble_;
};

}  // namespace fcap::updater
