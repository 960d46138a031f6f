#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "redis/backoff.h"

namespace fcap::redis {

/// Decides whether requests to a node are worth sending. Pure: it is told the time and what
/// happened, and does nothing itself.
///
///   closed --(failures in a row)--> open --(backoff)--> probing --(answer)--> closed
///                                     ^------(none, longer backoff)---|
///
/// The owner sends a probe of its own (a PING, or a new connection); no request pays for finding
/// out. The backoff starts over only once a request has succeeded: a server that answers probes but
/// no requests is asked less and less often.
class Breaker {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Options {
    std::size_t failures;  ///< in a row that open it; 0: never opens
    Backoff::Duration backoff_min;
    Backoff::Duration backoff_max;
  };

  enum class State : std::uint8_t { kClosed, kOpen, kProbing };

  Breaker(const Options& options, Jitter jitter);

  /// A request was answered in time.
  void on_success() noexcept;
  /// `count` requests or connection attempts failed.
  void on_failures(std::size_t count, TimePoint now);

  /// Whether it is open and has waited long enough.
  [[nodiscard]] bool probe_due(TimePoint now) const noexcept;
  void on_probe_sent() noexcept;
  void on_probe_success() noexcept;
  void on_probe_failure(TimePoint now);

  [[nodiscard]] State state() const noexcept { return state_; }
  /// When probe_due() turns true; the end of time unless open.
  [[nodiscard]] TimePoint probe_at() const noexcept;

 private:
  void open(TimePoint now);

  std::size_t failures_max_;
  std::size_t failures_ = 0;
  State state_ = State::kClosed;
  TimePoint probe_at_;
  Backoff backoff_;
};

}  // namespace fcap::redis
