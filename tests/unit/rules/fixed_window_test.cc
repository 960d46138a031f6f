// How windows of fixed length are counted. What rules make of it is tested with the calendar and
// the properties.
#include "rules/fixed_window.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace fcap::rules {
namespace fixed_window_test {

constexpr std::int64_t kNowMs = 1'774'746'000'000;
constexpr std::int64_t kMinuteMs = 60'000;
constexpr std::int64_t kDayMs = 24 * 60 * kMinuteMs;
constexpr std::int64_t kRetentionMs = 32 * kDayMs;
constexpr std::int64_t kLastMs = kNowMs - 2 * kMinuteMs;

FixedWindow window(std::int64_t length_ms, bool any_confirmation_order = false) {
  return {length_ms, kRetentionMs, any_confirmation_order};
}

// So many, a distance apart, the last of them two minutes ago.
std::vector<Instant> entries(std::size_t count, std::int64_t distance_ms) {
  std::vector<Instant> times;
  for (std::size_t i = count; i-- > 0;) {
    times.push_back(instant_from_ms(kLastMs - static_cast<std::int64_t>(i) * distance_ms));
  }
  return times;
}

// That expire one after the other.
std::vector<Reserved> reservations(std::size_t count) {
  std::vector<Reserved> reserved;
  for (std::size_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::int64_t>(i);
    reserved.push_back(
        {.key = 1, .time_ms = kNowMs - 1'000 - number, .expires_ms = kNowMs + 10 * (number + 1)});
  }
  return reserved;
}

// --- The same, told from the words of docs/semantics.md alone.

std::vector<std::int64_t> openings(const std::vector<Instant>& times, FixedWindow window,
                                   std::int64_t at_ms) {
  std::vector<std::int64_t> opened;
  for (const Instant time : times) {
    if (to_ms(time) <= at_ms - window.retention_ms) continue;
    if (opened.empty() || to_ms(time) >= opened.back() + window.length_ms) {
      opened.push_back(to_ms(time));
    }
  }
  return opened;
}

std::int64_t close_of(const std::vector<std::int64_t>& opened, FixedWindow window,
                      std::int64_t time_ms) {
  for (const std::int64_t opening : opened) {
    if (opening <= time_ms && time_ms < opening + window.length_ms) {
      return opening + window.length_ms;
    }
  }
  return time_ms + window.length_ms;
}

// Whether a reservation, if confirmed, would open a window that takes an entry in.
bool would_move(const std::vector<Instant>& times, const std::vector<std::int64_t>& opened,
                const Reserved& each, FixedWindow window) {
  for (const std::int64_t opening : opened) {
    if (opening <= each.time_ms && each.time_ms < opening + window.length_ms) return false;
  }
  return std::any_of(times.begin(), times.end(), [&](Instant time) {
    return to_ms(time) > each.time_ms && to_ms(time) < each.time_ms + window.length_ms;
  });
}

std::uint32_t count_at(const std::vector<Instant>& times, const std::vector<Reserved>& reserved,
                       FixedWindow window, std::int64_t at_ms) {
  const std::vector<std::int64_t> opened = openings(times, window, at_ms);
  std::uint32_t count = 0;
  const bool moves = window.any_confirmation_order &&
                     std::any_of(reserved.begin(), reserved.end(), [&](const Reserved& each) {
                       return each.expires_ms > at_ms && would_move(times, opened, each, window);
                     });
  if (moves) {
    for (const Instant time : times) {
      if (to_ms(time) > at_ms - window.length_ms) ++count;
    }
    for (const Reserved& each : reserved) {
      if (each.expires_ms > at_ms && each.time_ms > at_ms - window.length_ms) ++count;
    }
    return count;
  }
  for (const Instant time : times) {
    const bool in_reach = to_ms(time) > at_ms - window.retention_ms;
    if (in_reach && close_of(opened, window, to_ms(time)) > at_ms) ++count;
  }
  for (const Reserved& each : reserved) {
    if (each.expires_ms > at_ms && close_of(opened, window, each.time_ms) > at_ms) ++count;
  }
  return count;
}

// Nothing changes between these instants.
std::int64_t clears_at(const std::vector<Instant>& times, const std::vector<Reserved>& reserved,
                       FixedWindow window, std::uint32_t limit) {
  std::vector<std::int64_t> instants = {kNowMs};
  const auto add = [&](std::int64_t at_ms) {
    if (at_ms > kNowMs) instants.push_back(at_ms);
  };
  for (const Instant time : times) {
    add(to_ms(time) + window.length_ms);
    add(to_ms(time) + window.retention_ms);
  }
  for (const Reserved& each : reserved) {
    add(each.time_ms + window.length_ms);
    add(each.expires_ms);
  }
  std::sort(instants.begin(), instants.end());
  return *std::find_if(instants.begin(), instants.end(), [&](std::int64_t at_ms) {
    return count_at(times, reserved, window, at_ms) < limit;
  });
}

// Re-run one with FCAP_TEST_SEED.
TEST(FixedWindows, CountAndClearAsTheDefinitionSays) {
  const std::uint64_t seed = test_seed(20'261'129);
  for (std::uint64_t i = 0; i < 300; ++i) {
    SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed + i));
    std::mt19937_64 random(seed + i);
    const auto below = [&](std::int64_t bound) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
    };
    // Long rows without a gap, and single ones; also some that are ahead, or out of reach.
    const std::int64_t span_ms = below(2) == 0 ? kRetentionMs + kDayMs : kDayMs;
    std::vector<Instant> times;
    for (std::int64_t left = below(150); left > 0; --left) {
      times.push_back(instant_from_ms(kNowMs + 2 * kMinuteMs - below(span_ms)));
    }
    std::sort(times.begin(), times.end());
    std::vector<Reserved> reserved;
    for (std::int64_t left = below(2) * below(12); left > 0; --left) {
      // Some at the very time of an entry.
      const bool same = !times.empty() && below(2) == 0;
      const auto any = static_cast<std::size_t>(below(static_cast<std::int64_t>(times.size()) + 1));
      reserved.push_back(
          {.key = 1,
           .time_ms = same ? to_ms(times[any % times.size()]) : kNowMs + kMinuteMs - below(span_ms),
           .expires_ms = kNowMs - kMinuteMs + below(kDayMs)});
    }
    const FixedWindow fixed = window(
        below(2) == 0 ? kMinuteMs + below(kDayMs) : kRetentionMs - below(2) * below(kRetentionMs),
        below(2) == 0);
    const auto limit = static_cast<std::uint32_t>(1 + below(below(2) == 0 ? 3 : 60));
    const std::uint32_t count = count_at(times, reserved, fixed, kNowMs);
    const std::int64_t clears_ms = clears_at(times, reserved, fixed, limit);
    WindowChain chain;
    EXPECT_EQ(open_windows(times, reserved, fixed, kNowMs, chain).count, count);
    EXPECT_EQ(fixed_clears_at(times, reserved, fixed, limit, kNowMs, chain), clears_ms);
    if (!reserved.empty()) continue;
    const OpenWindows open = open_windows(times, fixed, kNowMs);
    EXPECT_EQ(open.count, count);
    EXPECT_EQ(fixed_clears_at(times, fixed, limit, kNowMs), clears_ms);
    if (count == 0) continue;
    std::vector<std::int64_t> opened = openings(times, fixed, kNowMs);
    std::erase_if(opened, [&](std::int64_t at) { return at + fixed.length_ms <= kNowMs; });
    EXPECT_EQ(open.opened_ms, opened.front());
    EXPECT_EQ(open.closes_ms, opened.front() + fixed.length_ms);
    EXPECT_EQ(open.last_closes_ms, opened.back() + fixed.length_ms);
  }
}

// --- What it takes, whatever is in a record.

std::size_t steps_of_a_count(std::size_t count, std::int64_t length_ms, bool hard) {
  WindowChain chain;
  const std::vector<Instant> times = entries(count, 61'000);
  return open_windows(times, reservations(count), window(length_ms, hard), kNowMs, chain).steps;
}

TEST(FixedWindows, ManyReservationsBesideManyEntriesTakeNLogNSteps) {
  for (const std::size_t count : {1'000U, 2'000U, 20'000U}) {
    const std::size_t steps = count * static_cast<std::size_t>(std::bit_width(count));
    for (const std::int64_t length_ms : {kMinuteMs, 60 * kMinuteMs, kDayMs, kRetentionMs}) {
      EXPECT_LE(steps_of_a_count(count, length_ms, false), steps) << count << ", " << length_ms;
      EXPECT_LE(steps_of_a_count(count, length_ms, true), steps) << count << ", " << length_ms;
    }
  }
}

// One leaves after the other, and each time the chain begins again.
TEST(FixedWindows, OfTheLengthOfTheRetentionTakeFewStepsForEachEntryThatLeaves) {
  const std::vector<Instant> times = entries(20'000, 61'000);
  EXPECT_LE(open_windows(times, window(kRetentionMs), kNowMs).steps, 40U);
  EXPECT_EQ(fixed_clears_at(times, window(kRetentionMs), 1, kNowMs), kLastMs + kRetentionMs);
  EXPECT_EQ(fixed_clears_at(times, window(kRetentionMs), 11, kNowMs),
            kLastMs - 10 * 61'000 + kRetentionMs);
}

// Thousands of entries leave the retention in the ten minutes for which a window is still open:
// each would be a turn over hundreds of windows, if one that moves none of them were a turn.
TEST(FixedWindows, EntriesThatLeaveTheRetentionWithoutMovingAWindowTakeNoTurn) {
  constexpr std::int64_t kHourMs = 60 * kMinuteMs;
  constexpr std::int64_t kOpenedMs = kNowMs - 50 * kMinuteMs;
  std::vector<Instant> times;
  for (std::int64_t i = 1; i <= 5'000; ++i) {
    times.push_back(instant_from_ms(kNowMs - kRetentionMs + i * 120));
  }
  // Two in each window, and no gap in between.
  for (std::int64_t i = 778; i >= 0; --i) {
    times.push_back(instant_from_ms(kOpenedMs - i * (kHourMs - 55'000)));
  }
  times.push_back(instant_from_ms(kNowMs));
  EXPECT_EQ(fixed_clears_at(times, window(kHourMs), 1, kNowMs), kOpenedMs + kHourMs);
}

TEST(FixedWindows, WhereItTakesTooLongTheInstantIsOneAtWhichAllIsOver) {
  const std::vector<Instant> times = entries(20'000, 61'000);
  const std::vector<Reserved> reserved = reservations(20'000);
  WindowChain chain;
  for (const bool hard : {false, true}) {
    const FixedWindow minute = window(kMinuteMs, hard);
    const std::int64_t clears_ms = fixed_clears_at(times, reserved, minute, 10'000, kNowMs, chain);
    EXPECT_LE(clears_ms, kNowMs + kMinuteMs);
    EXPECT_EQ(open_windows(times, reserved, minute, clears_ms, chain).count, 0U);
    EXPECT_EQ(fixed_clears_at(entries(2'000, 61'000), reservations(64), minute, 1, kNowMs, chain),
              kNowMs + 640)
        << "the first one";
  }
}

}  // namespace fixed_window_test
}  // namespace fcap::rules
