#include "rules/fixed_window.h"

#include <algorithm>

namespace fcap::rules {
namespace {

std::size_t first_after(std::span<const Instant> times, std::int64_t instant_ms) noexcept {
  const auto first =
      std::upper_bound(times.begin(), times.end(), instant_ms,
                       [](std::int64_t instant, Instant time) { return instant < to_ms(time); });
  return static_cast<std::size_t>(first - times.begin());
}

// When the window closes that an instant is in: the entries' one, or one of its own. The chain is
// followed from its start, since a window around the instant may be closed already.
std::int64_t closes_at(std::span<const Instant> times, FixedWindow window, std::int64_t instant_ms,
                       std::int64_t now_ms) noexcept {
  std::size_t at = first_after(times, now_ms - window.retention_ms);
  while (at < times.size() && bounded_ms(times[at]) <= instant_ms) {
    const std::int64_t closes_ms = bounded_ms(times[at]) + window.length_ms;
    if (instant_ms < closes_ms) return closes_ms;
    at = first_after(times, closes_ms - 1);
  }
  return instant_ms + window.length_ms;
}

// Whether a reservation that is in no window would, once confirmed, take an entry into its own.
bool may_move(std::span<const Instant> times, std::span<const Reserved> reserved,
              FixedWindow window, std::int64_t now_ms) noexcept {
  return std::any_of(reserved.begin(), reserved.end(), [&](const Reserved& each) {
    if (each.expires_ms <= now_ms) return false;
    const std::int64_t own_ms = each.time_ms + window.length_ms;
    const std::size_t next = first_after(times, each.time_ms);
    return next < times.size() && bounded_ms(times[next]) < own_ms &&
           closes_at(times, window, each.time_ms, now_ms) == own_ms;
  });
}

void count_one(OpenWindows& open, std::int64_t opened_ms, std::int64_t closes_ms) noexcept {
  const bool first = open.count++ == 0;
  open.opened_ms = first ? opened_ms : std::min(open.opened_ms, opened_ms);
  open.closes_ms = first ? closes_ms : std::min(open.closes_ms, closes_ms);
  open.last_closes_ms = first ? closes_ms : std::max(open.last_closes_ms, closes_ms);
}

// Each event and reservation as a window of its own.
OpenWindows own_windows(std::span<const Instant> times, std::span<const Reserved> reserved,
                        FixedWindow window, std::int64_t now_ms) noexcept {
  OpenWindows open;
  for (std::size_t i = first_after(times, now_ms - window.length_ms); i < times.size(); ++i) {
    count_one(open, bounded_ms(times[i]), bounded_ms(times[i]) + window.length_ms);
  }
  for (const Reserved& each : reserved) {
    const std::int64_t closes_ms = each.time_ms + window.length_ms;
    if (each.expires_ms > now_ms && closes_ms > now_ms) count_one(open, each.time_ms, closes_ms);
  }
  return open;
}

}  // namespace

OpenWindows open_windows(std::span<const Instant> times, FixedWindow window,
                         std::int64_t now_ms) noexcept {
  const std::size_t in_reach = first_after(times, now_ms - window.retention_ms);
  // A window that is open has opened within the last `length`, so no earlier entry is in it.
  std::size_t at = first_after(times, now_ms - window.length_ms);
  if (at == times.size()) return {};
  // The chain is followed from the nearest entry that opens a window whatever came before it: the
  // first one in reach, or one that is a whole length after its predecessor.
  while (at > in_reach && bounded_ms(times[at]) - bounded_ms(times[at - 1]) < window.length_ms) {
    --at;
  }
  OpenWindows open;
  open.chain_start_ms = bounded_ms(times[at]);
  std::int64_t opened_ms = open.chain_start_ms;
  for (; at < times.size(); ++at) {
    if (bounded_ms(times[at]) >= opened_ms + window.length_ms) opened_ms = bounded_ms(times[at]);
    if (opened_ms + window.length_ms <= now_ms) continue;
    if (open.count++ == 0) {
      open.opened_ms = opened_ms;
      open.closes_ms = opened_ms + window.length_ms;
    }
    open.last_closes_ms = opened_ms + window.length_ms;
  }
  return open;
}

std::int64_t fixed_clears_at(std::span<const Instant> times, FixedWindow window,
                             std::uint32_t limit, std::int64_t now_ms) noexcept {
  std::int64_t at_ms = now_ms;
  // Each step passes the close of a window or an entry's leaving of the retention.
  const std::size_t steps_max = 4 * times.size() + 4;
  for (std::size_t step = 0; step < steps_max; ++step) {
    const OpenWindows open = open_windows(times, window, at_ms);
    if (open.count < limit) return at_ms;
    at_ms = std::min(open.closes_ms, open.chain_start_ms + window.retention_ms);
  }
  return at_ms;
}

OpenWindows open_windows(std::span<const Instant> times, std::span<const Reserved> reserved,
                         FixedWindow window, std::int64_t now_ms) noexcept {
  if (window.any_confirmation_order && may_move(times, reserved, window, now_ms)) {
    return own_windows(times, reserved, window, now_ms);
  }
  OpenWindows open = open_windows(times, window, now_ms);
  for (const Reserved& each : reserved) {
    if (each.expires_ms <= now_ms) continue;
    const std::int64_t closes_ms = closes_at(times, window, each.time_ms, now_ms);
    if (closes_ms > now_ms) count_one(open, each.time_ms, closes_ms);
  }
  return open;
}

std::int64_t fixed_clears_at(std::span<const Instant> times, std::span<const Reserved> reserved,
                             FixedWindow window, std::uint32_t limit,
                             std::int64_t now_ms) noexcept {
  std::int64_t at_ms = now_ms;
  // As above, and each step passes the end of a reservation or of its window as well.
  const std::size_t steps_max = 4 * (times.size() + reserved.size()) + 4;
  for (std::size_t step = 0; step < steps_max; ++step) {
    const OpenWindows open = open_windows(times, reserved, window, at_ms);
    if (open.count < limit) return at_ms;
    std::int64_t next_ms = open.closes_ms;
    const std::size_t in_reach = first_after(times, at_ms - window.retention_ms);
    if (in_reach < times.size()) {
      next_ms = std::min(next_ms, bounded_ms(times[in_reach]) + window.retention_ms);
    }
    for (const Reserved& each : reserved) {
      if (each.expires_ms > at_ms) next_ms = std::min(next_ms, each.expires_ms);
    }
    at_ms = next_ms;
  }
  return at_ms;
}

}  // namespace fcap::rules
