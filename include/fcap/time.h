#pragma once

#include <chrono>

#include <fcap/cplusplus.h>

namespace fcap {

/// A point in time, in whole milliseconds since 1970-01-01T00:00:00Z. Every instant in fcap's
/// interfaces, records and rules is one of these; lengths of time are std::chrono durations.
using Instant = std::chrono::sys_time<std::chrono::milliseconds>;

/// The instant that lies `ms` milliseconds after 1970-01-01T00:00:00Z.
[[nodiscard]] constexpr Instant instant_from_ms(std::chrono::milliseconds::rep ms) noexcept {
  return Instant{std::chrono::milliseconds{ms}};
}

/// Milliseconds since 1970-01-01T00:00:00Z.
[[nodiscard]] constexpr std::chrono::milliseconds::rep to_ms(Instant instant) noexcept {
  return instant.time_since_epoch().count();
}

}  // namespace fcap
