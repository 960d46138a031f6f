#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <fcap/time.h>

#include "rules/history.h"

namespace fcap::rules {

/// The windows of a fixed rule that are not yet closed at an instant.
struct OpenWindows {
  std::uint32_t count = 0;     ///< entries in them, and reservations
  std::int64_t opened_ms = 0;  ///< when the first of them opened; meaningless when count is 0
  std::int64_t closes_ms = 0;  ///< when the first of them closes
  std::int64_t last_closes_ms = 0;
  std::size_t first_opener = 0;  ///< the entry that opened the first of them
  std::size_t before = 0;        ///< so many windows of the chain were followed up to there
  std::size_t steps = 0;         ///< what it took to find out
};

/// What a fixed window is made of.
struct FixedWindow {
  std::int64_t length_ms = 0;
  std::int64_t retention_ms = 0;
  /// Count so that the limit holds whichever reservations are confirmed, in whatever order.
  bool any_confirmation_order = false;
};

/// The whole chain of windows over some entries. Its memory is kept for the next one.
///
/// Not thread-safe.
class WindowChain {
 public:
  /// `times`: ascending. Throws std::bad_alloc.
  void follow(std::span<const Instant> times, FixedWindow window, std::int64_t now_ms);
  /// When the window closes that an instant is in: the entries' one, or one of its own.
  [[nodiscard]] std::int64_t closes_at(std::int64_t instant_ms) const noexcept;
  /// Whether the instant is in a window of the entries.
  [[nodiscard]] bool holds(std::int64_t instant_ms) const noexcept;
  [[nodiscard]] std::size_t steps() const noexcept { return steps_; }

 private:
  [[nodiscard]] std::vector<std::int64_t>::const_iterator opening(
      std::int64_t instant_ms) const noexcept;

  std::int64_t length_ms_ = 0;
  std::vector<std::int64_t> opened_ms_;
  std::size_t steps_ = 0;
};

/// Follows the chain of windows over `times` (ascending): the first entry in reach opens a window,
/// the first one after its close opens the next.
[[nodiscard]] OpenWindows open_windows(std::span<const Instant> times, FixedWindow window,
                                       std::int64_t now_ms) noexcept;

/// The first instant, `now` or later, at which fewer than `limit` (above zero) entries are in open
/// windows. Where that takes half a million steps to find, an instant at which none is: records of
/// the usual size are far below it.
[[nodiscard]] std::int64_t fixed_clears_at(std::span<const Instant> times, FixedWindow window,
                                           std::uint32_t limit, std::int64_t now_ms) noexcept;

/// The same with reservations. One counts in the window that entries opened around its time, and
/// as a window of its own where none did; it opens none for others. With `any_confirmation_order`,
/// where a confirmation could move the windows of entries, all that happened within the last
/// `length` counts, because any window that is open then has opened within that time. Half a
/// million steps are reached where hundreds of entries leave the retention before a window closes.
/// `chain` is room to work in. They throw std::bad_alloc.
[[nodiscard]] OpenWindows open_windows(std::span<const Instant> times,
                                       std::span<const Reserved> reserved, FixedWindow window,
                                       std::int64_t now_ms, WindowChain& chain);
[[nodiscard]] std::int64_t fixed_clears_at(std::span<const Instant> times,
                                           std::span<const Reserved> reserved, FixedWindow window,
                                           std::uint32_t limit, std::int64_t now_ms,
                                           WindowChain& chain);

}  // namespace fcap::rules
