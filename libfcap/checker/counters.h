#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "checker/stripes.h"

namespace fcap::checker {

enum class Counter : std::uint8_t {
  kChecks,
  kChecksAnswered,
  kCandidates,
  kAllowed,
  kCapped,
  kShadowCapped,
  kNoUser,
  kNoRules,
  kTimeouts,
  kUnavailable,
  kBreakerOpen,
  kOverloaded,
  kUndecodable,
  kForked,
  kInvalid,
  kUnknownFrames,
  kShownNoted,
  kShownConfirmed,
  kShownDisplaced,
  kCachedChecks,
  kCachedVerdicts,
  kCallsBegun,
  kCallsSubmitted,  ///< calls that no longer need the store
  kCallsEnded,
};
inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::kCallsEnded) + 1;

/// Counters that many threads add to without meeting. Sums are not a snapshot of one instant.
///
/// Thread safety: all functions from any thread.
class Counters {
 public:
  void add(Counter counter, std::uint64_t amount = 1) noexcept {
    if (amount == 0) return;
    cell(current_stripe(), counter).fetch_add(amount, std::memory_order_relaxed);
  }

  /// add() with a place in the single total order: whoever sees the sum without it has stored what
  /// this thread loads afterwards, if that is sequentially consistent too.
  void add_ordered(Counter counter) noexcept {
    cell(current_stripe(), counter).fetch_add(1, std::memory_order_seq_cst);
  }

  /// add() that also publishes what this thread did before; pairs with sum().
  void add_release(Counter counter) noexcept {
    cell(current_stripe(), counter).fetch_add(1, std::memory_order_release);
  }

  [[nodiscard]] std::uint64_t sum(Counter counter) const noexcept {
    std::uint64_t total = 0;
    for (const auto& stripe : stripes_) {
      total += stripe.cells[static_cast<std::size_t>(counter)].load(std::memory_order_seq_cst);
    }
    return total;
  }

  /// Whether every call that had begun has come to that point. Sums are taken backwards, so that a
  /// call in between can only make this false.
  [[nodiscard]] bool all_past(Counter point) const noexcept {
    const std::uint64_t past = sum(point);
    return sum(Counter::kCallsBegun) == past;
  }

 private:
  struct alignas(kCacheLineBytes) Stripe {
    std::array<std::atomic<std::uint64_t>, kCounterCount> cells{};
  };

  std::atomic<std::uint64_t>& cell(std::size_t stripe, Counter counter) noexcept {
    return stripes_[stripe].cells[static_cast<std::size_t>(counter)];
  }

  std::array<Stripe, kStripeCount> stripes_{};
};

/// Counts a call for as long as it may touch the Core.
class CallInside {
 public:
  explicit CallInside(Counters& counters) noexcept : counters_(counters) {
    counters_.add_ordered(Counter::kCallsBegun);
  }
  ~CallInside() {
    submitted();
    counters_.add_release(Counter::kCallsEnded);
  }
  CallInside(const CallInside&) = delete;
  CallInside& operator=(const CallInside&) = delete;

  /// The call does not go to the store from here on.
  void submitted() noexcept {
    if (!std::exchange(submitted_, true)) counters_.add_release(Counter::kCallsSubmitted);
  }

 private:
  Counters& counters_;
  bool submitted_ = false;
};

}  // namespace fcap::checker
