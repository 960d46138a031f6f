#pragma once

#include <atomic>
#include <chrono>

#include <fcap/time.h>

namespace fcap::base {

/// By how much wall_now() is ahead of the system's clock. 0 but in tests of what happens on
/// machines whose clocks are wrong.
inline std::atomic<std::chrono::milliseconds::rep> wall_clock_ahead_ms{0};

/// The wall clock, in the unit that everything is stored in.
inline Instant wall_now() noexcept {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) +
         std::chrono::milliseconds{wall_clock_ahead_ms.load(std::memory_order_relaxed)};
}

}  // namespace fcap::base
