#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

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

  /// add() that also publishes what this thread did before; pairs with sum().
  void add_release(Counter counter) noexcept {
    cell(current_stripe(), counter).fetch_add(1, std::memory_order_release);
  }

  [[nodiscard]] std::uint64_t sum(Counter counter) const noexcept {
    std::uint64_t total = 0;
    for (const auto& stripe : stripes_) {
      total += stripe.cells[static_cast<std::size_t>(counter)].load(std::memory_order_acquire);
    }
    return total;
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

}  // namespace fcap::checker
