#pragma once

#include <cstddef>

#include <sched.h>

namespace fcap::checker {

/// What many threads write is kept once per stripe, and a thread uses the stripe of the processor
/// it runs on, so that processors do not take each other's cache lines.
inline constexpr std::size_t kStripeCount = 64;
inline constexpr std::size_t kCacheLineBytes = 64;

/// Only a hint: the thread may have moved by the time it is used.
[[nodiscard]] inline std::size_t current_stripe() noexcept {
  const int cpu = ::sched_getcpu();
  return cpu < 0 ? 0 : static_cast<std::size_t>(cpu) % kStripeCount;
}

}  // namespace fcap::checker
