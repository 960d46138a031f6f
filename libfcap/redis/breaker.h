#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/backoff.h"

namespace fcap::redis {

/// Decides whether requests to a node are worth sending. Pure: its owner tells it the time and the
/// outcomes.
///
///   closed --(failures in a row, or too large a share of a second's requests)--> open
///   --(backoff)--> probing --(answer)--> closed
///                                     ^------(none, longer backoff)---|
///
/// The owner probes by a PING or a new connection of its own, so that no request is spent on it.
/// The backoff starts over only once a request has succeeded: a server that answers probes but no
/// requests is probed less and less often.
class Breaker {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Options {
    std::size_t failures;  ///< in a row that open it; 0: never opens
    /// The share of failures among a sliding second's requests that opens it, if they are at least
    /// `failures`; 0: only failures in a row count.
    double failure_share;
    base::Backoff::Duration backoff_min;
    base::Backoff::Duration backoff_max;
  };

  enum class State : std::uint8_t { kClosed, kOpen, kProbing };

  Breaker(const Options& options, base::Jitter jitter);

  /// `count` requests were answered in time.
  void on_success(std::size_t count, TimePoint now) noexcept;
  /// `count` requests or connection attempts failed.
  void on_failures(std::size_t count, TimePoint now);

  /// Whether it is open and has waited long enough.
  [[nodiscard]] bool probe_due(TimePoint now) const noexcept;
  void on_probe_sent() noexcept;
  void on_probe_success(TimePoint now) noexcept;
  void on_probe_failure(TimePoint now);

  [[nodiscard]] State state() const noexcept { return state_; }
  /// When probe_due() turns true; the end of time unless open.
  [[nodiscard]] TimePoint probe_at() const noexcept;

 private:
  static constexpr std::chrono::milliseconds kSlice{100};
  static constexpr std::size_t kSlices = 10;

  struct Slice {
    std::int64_t number = -1;  // since the clock's beginning
    std::size_t successes = 0;
    std::size_t failures = 0;
  };

  Slice& slice_at(TimePoint now) noexcept;
  [[nodiscard]] bool share_too_large(TimePoint now) const noexcept;
  void open(TimePoint now);

  double failure_share_;
  std::array<Slice, kSlices> slices_{};
  bool opened_by_share_ = false;
  TimePoint settled_at_{};  // until when the share must have stayed small for the backoff to reset
  std::size_t failures_max_;
  std::size_t failures_ = 0;
  State state_ = State::kClosed;
  TimePoint probe_at_;
  base::Backoff backoff_;
};

}  // namespace fcap::redis
