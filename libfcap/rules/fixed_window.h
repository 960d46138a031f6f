#pragma once

#include <cstdint>
#include <span>

#include <fcap/time.h>

#include "rules/history.h"

namespace fcap::rules {

/// The windows of a fixed rule that are not yet closed at an instant.
struct OpenWindows {
  std::uint32_t count = 0;     ///< entries in them, and reservations
  std::int64_t opened_ms = 0;  ///< when the first of them opened; meaningless when count is 0
  std::int64_t closes_ms = 0;  ///< when the first of them closes
  std::int64_t last_closes_ms = 0;
  /// The entry that the chain was followed from: when it leaves the retention, the chain changes.
  std::int64_t chain_start_ms = 0;
};

/// What a fixed window is made of.
struct FixedWindow {
  std::int64_t length_ms = 0;
  std::int64_t retention_ms = 0;
  /// Count so that the limit holds whichever reservations are confirmed, in whatever order.
  bool any_confirmation_order = false;
};

/// Follows the chain of windows over `times` (ascending): the first entry in reach opens a window,
/// the first one after its close opens the next.
[[nodiscard]] OpenWindows open_windows(std::span<const Instant> times, FixedWindow window,
                                       std::int64_t now_ms) noexcept;

/// The first instant, `now` or later, at which fewer than `limit` (above zero) entries are in open
/// windows.
[[nodiscard]] std::int64_t fixed_clears_at(std::span<const Instant> times, FixedWindow window,
                                           std::uint32_t limit, std::int64_t now_ms) noexcept;

/// The same with reservations. One counts in the window that entries opened around its time, and
/// as a window of its own where none did; it opens none for others. With `any_confirmation_order`,
/// where a confirmation could move the windows of entries, all that happened within the last
/// `length` counts, because any window that is open then has opened within that time.
[[nodiscard]] OpenWindows open_windows(std::span<const Instant> times,
                                       std::span<const Reserved> reserved, FixedWindow window,
                                       std::int64_t now_ms) noexcept;
[[nodiscard]] std::int64_t fixed_clears_at(std::span<const Instant> times,
                                           std::span<const Reserved> reserved, FixedWindow window,
                                           std::uint32_t limit, std::int64_t now_ms) noexcept;

}  // namespace fcap::rules
