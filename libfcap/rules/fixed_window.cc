#include "rules/fixed_window.h"

#include <algorithm>
#include <bit>

namespace fcap::rules {
namespace {

// About a millisecond.
constexpr std::size_t kStepsMax = std::size_t{1} << 19U;

std::size_t first_after(std::span<const Instant> times, std::int64_t instant_ms) noexcept {
  const auto first =
      std::upper_bound(times.begin(), times.end(), instant_ms,
                       [](std::int64_t instant, Instant time) { return instant < to_ms(time); });
  return static_cast<std::size_t>(first - times.begin());
}

// The first entry that is not in the window that the entry `at` has opened. Windows of few entries
// take few steps, and those of many not many more.
std::size_t next_opening(std::span<const Instant> times, std::size_t at, std::int64_t closes_ms,
                         std::size_t& steps) noexcept {
  std::size_t stride = 1;
  while (stride < times.size() - at && bounded_ms(times[at + stride]) < closes_ms) {
    at += stride;
    stride *= 2;
    ++steps;
  }
  const auto begin = times.begin() + static_cast<std::ptrdiff_t>(at);
  const auto end = begin + static_cast<std::ptrdiff_t>(std::min(stride, times.size() - at));
  steps += static_cast<std::size_t>(std::bit_width(stride));
  const auto next = std::lower_bound(
      begin + 1, end, closes_ms,
      [](Instant time, std::int64_t instant) { return bounded_ms(time) < instant; });
  return static_cast<std::size_t>(next - times.begin());
}

// When the retention passes the last start from which the chain opens a window at the entry `at`
// after `before` others. Until then all windows from `at` on stay as they are, although the first
// entries of the chain leave the retention.
//
// The later of two starts is never at an earlier entry after as many windows. So those from which
// the chain reaches `at` after `before` windows are neighbours, and the last of them is found
// by going back from `at`, each time to the last entry that a window which ends there can begin at.
std::int64_t leaves_at(std::span<const Instant> times, std::size_t at, std::size_t before,
                       FixedWindow window, std::size_t& steps) noexcept {
  for (; before > 0; --before) {
    at = first_after(times, bounded_ms(times[at]) - window.length_ms) - 1;
    steps += static_cast<std::size_t>(std::bit_width(times.size()));
  }
  return bounded_ms(times[at]) + window.retention_ms;
}

// Whether a reservation that is in no window would, once confirmed, take an entry into its own.
bool may_move(std::span<const Instant> times, std::span<const Reserved> reserved,
              FixedWindow window, std::int64_t now_ms, const WindowChain& chain) noexcept {
  return std::any_of(reserved.begin(), reserved.end(), [&](const Reserved& each) {
    if (each.expires_ms <= now_ms) return false;
    const std::int64_t own_ms = each.time_ms + window.length_ms;
    const std::size_t next = first_after(times, each.time_ms);
    return next < times.size() && bounded_ms(times[next]) < own_ms && !chain.holds(each.time_ms);
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
  std::size_t i = first_after(times, now_ms - window.length_ms);
  open.steps = times.size() - i;
  for (; i < times.size(); ++i) {
    count_one(open, bounded_ms(times[i]), bounded_ms(times[i]) + window.length_ms);
  }
  for (const Reserved& each : reserved) {
    const std::int64_t closes_ms = each.time_ms + window.length_ms;
    if (each.expires_ms > now_ms && closes_ms > now_ms) count_one(open, each.time_ms, closes_ms);
  }
  return open;
}

// When nothing of all this counts any more.
std::int64_t all_over_at(std::span<const Instant> times, std::span<const Reserved> reserved,
                         FixedWindow window, std::int64_t now_ms) noexcept {
  std::int64_t over_ms = now_ms;
  if (!times.empty()) over_ms = std::max(over_ms, bounded_ms(times.back()) + window.length_ms);
  for (const Reserved& each : reserved) {
    over_ms = std::max(over_ms, std::min(each.expires_ms, each.time_ms + window.length_ms));
  }
  return over_ms;
}

}  // namespace

void WindowChain::follow(std::span<const Instant> times, FixedWindow window, std::int64_t now_ms) {
  length_ms_ = window.length_ms;
  steps_ = 0;
  opened_ms_.clear();
  for (std::size_t at = first_after(times, now_ms - window.retention_ms); at < times.size();) {
    opened_ms_.push_back(bounded_ms(times[at]));
    at = next_opening(times, at, opened_ms_.back() + length_ms_, steps_);
  }
}

// The opening of the window that the instant is in; end(): it is in none.
std::vector<std::int64_t>::const_iterator WindowChain::opening(
    std::int64_t instant_ms) const noexcept {
  const auto after = std::upper_bound(opened_ms_.begin(), opened_ms_.end(), instant_ms);
  const bool in_window = after != opened_ms_.begin() && instant_ms < *(after - 1) + length_ms_;
  return in_window ? after - 1 : opened_ms_.end();
}

bool WindowChain::holds(std::int64_t instant_ms) const noexcept {
  return opening(instant_ms) != opened_ms_.end();
}

std::int64_t WindowChain::closes_at(std::int64_t instant_ms) const noexcept {
  const auto opened = opening(instant_ms);
  return (opened != opened_ms_.end() ? *opened : instant_ms) + length_ms_;
}

OpenWindows open_windows(std::span<const Instant> times, FixedWindow window,
                         std::int64_t now_ms) noexcept {
  constexpr std::size_t kBackMax = 32;
  const std::size_t in_reach = first_after(times, now_ms - window.retention_ms);
  // A window that is open has opened within the last `length`, so no earlier entry is in it.
  std::size_t at = first_after(times, now_ms - window.length_ms);
  if (at == times.size()) return {};
  OpenWindows open;
  // The chain is followed from an entry that opens a window whatever came before it: one that is a
  // whole length after its predecessor, if there is any near, or the first one in reach.
  while (at > in_reach && bounded_ms(times[at]) - bounded_ms(times[at - 1]) < window.length_ms) {
    --at;
    if (++open.steps == kBackMax) at = in_reach;
  }
  std::size_t before = 0;
  for (; at < times.size(); ++before) {
    const std::int64_t opened_ms = bounded_ms(times[at]);
    const std::int64_t closes_ms = opened_ms + window.length_ms;
    const std::size_t next = next_opening(times, at, closes_ms, open.steps);
    if (closes_ms > now_ms) {
      if (open.count == 0) {
        open.opened_ms = opened_ms;
        open.closes_ms = closes_ms;
        open.first_opener = at;
        open.before = before;
      }
      open.last_closes_ms = closes_ms;
      open.count += static_cast<std::uint32_t>(next - at);
    }
    at = next;
  }
  return open;
}

std::int64_t fixed_clears_at(std::span<const Instant> times, FixedWindow window,
                             std::uint32_t limit, std::int64_t now_ms) noexcept {
  std::int64_t at_ms = now_ms;
  // Each turn passes the close of a window, or brings other ones about because an entry leaves the
  // retention.
  for (std::size_t steps = 0; steps < kStepsMax;) {
    const OpenWindows open = open_windows(times, window, at_ms);
    if (open.count < limit) return at_ms;
    steps += open.steps;
    at_ms =
        std::min(open.closes_ms, leaves_at(times, open.first_opener, open.before, window, steps));
  }
  return all_over_at(times, {}, window, at_ms);
}

OpenWindows open_windows(std::span<const Instant> times, std::span<const Reserved> reserved,
                         FixedWindow window, std::int64_t now_ms, WindowChain& chain) {
  chain.follow(times, window, now_ms);
  const std::size_t steps = chain.steps() + reserved.size();
  OpenWindows open;
  if (window.any_confirmation_order && may_move(times, reserved, window, now_ms, chain)) {
    open = own_windows(times, reserved, window, now_ms);
  } else {
    open = open_windows(times, window, now_ms);
    for (const Reserved& each : reserved) {
      if (each.expires_ms <= now_ms) continue;
      const std::int64_t closes_ms = chain.closes_at(each.time_ms);
      if (closes_ms > now_ms) count_one(open, each.time_ms, closes_ms);
    }
  }
  open.steps += steps;
  return open;
}

std::int64_t fixed_clears_at(std::span<const Instant> times, std::span<const Reserved> reserved,
                             FixedWindow window, std::uint32_t limit, std::int64_t now_ms,
                             WindowChain& chain) {
  std::int64_t at_ms = now_ms;
  // As above, and each turn passes the end of a reservation or of its window as well.
  for (std::size_t steps = 0; steps < kStepsMax;) {
    const OpenWindows open = open_windows(times, reserved, window, at_ms, chain);
    if (open.count < limit) return at_ms;
    steps += open.steps;
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
  return all_over_at(times, reserved, window, at_ms);
}

}  // namespace fcap::rules
