#pragma once

#include <array>
#include <optional>

#include "harness/measure.h"
#include "harness/redis_console.h"
#include "peers/layout.h"

namespace fcap::bench {

// 2026-01-31T12:00:00Z, a Saturday.
inline constexpr Instant kNow = instant_from_ms(1'769'860'800'000);
inline constexpr Instant kMonthBegins = instant_from_ms(1'767'225'600'000);
inline constexpr auto kMonthAge = kNow - kMonthBegins;

struct HistoryEvent {
  std::size_t campaign;           // "c-1" or "c-2"
  std::chrono::milliseconds age;  // at kNow
  std::uint32_t fingerprint = 0;  // 0: of its own
  std::size_t user = 0;
};

struct Case {
  std::string_view name;
  std::optional<WindowKind> window;  // none: of every window
  std::vector<HistoryEvent> events;  // in the order of recording
  std::array<std::uint32_t, 2> expected;
  bool LayoutTraits::*needs;  // null: any layout can do it
  std::chrono::milliseconds asked_after;
};

inline std::vector<Case> all_cases() {
  using namespace std::chrono_literals;
  using std::chrono::days;
  using enum WindowKind;
  constexpr auto kCountingOnce = &LayoutTraits::counts_once;
  constexpr auto kLateEvents = &LayoutTraits::takes_late;
  std::vector<Case> cases;
  const auto add = [&](std::string_view name, std::optional<WindowKind> window,
                       const std::vector<HistoryEvent>& events, std::uint32_t first,
                       std::uint32_t second, bool LayoutTraits::*needs = nullptr,
                       std::chrono::milliseconds asked_after = 0ms) {
    cases.push_back({name, window, events, {first, second}, needs, asked_after});
  };
  add("no history", {}, {}, 0, 0);
  add("one event", {}, {{0, 1h}}, 1, 0);
  add("events of one campaign add up", {}, {{0, 3h}, {0, 2h}, {0, 1h}}, 3, 0);
  add("campaigns are counted apart", {}, {{0, 3h}, {1, 2h}, {1, 1h}}, 1, 2);
  add("another user's events do not count", {}, {{0, 2h}, {0, 1h, 0, 1}}, 1, 0);
  add("two events of one instant are two", {}, {{0, 1h}, {0, 1h}}, 2, 0);
  add("an event that comes twice counts once", {}, {{0, 1h, 7}, {0, 1h, 7}}, 1, 0, kCountingOnce);
  add("an event that comes late counts", {}, {{0, 1h}, {0, 2h}}, 2, 0, kLateEvents);
  add("a late event of before the window does not count", kSliding, {{0, 1h}, {0, kMonthAge + 1h}},
      1, 0, kLateEvents);
  add("sliding: an event exactly one window old no longer counts", kSliding,
      {{0, 24h}, {1, 24h - 1ms}}, 0, 1);
  add("sliding: the window moves with the asking", kSliding, {{0, 24h}, {0, 1h}}, 2, 0, nullptr,
      -1s);
  add("calendar: the month begins with its first instant", kCalendar,
      {{0, kMonthAge + 1s}, {1, kMonthAge}}, 0, 1);
  add("calendar: a new month starts from none", kCalendar, {{0, 1h}, {1, 0h}}, 0, 0, nullptr, 12h);
  add("calendar: a late event counts in its own month", kCalendar, {{0, 0h}, {0, kMonthAge + 1min}},
      1, 0, kLateEvents);
  add("fixed: the window closes one length after its first event", kFixed,
      {{0, days(30)}, {1, days(30) - 1s}}, 0, 1);
  add("fixed: later events do not move the end", kFixed, {{0, days(30)}, {0, days(1)}}, 0, 0);
  add("fixed: the next event after the end opens a new window", kFixed,
      {{0, days(31)}, {0, days(2)}, {0, 1h}}, 1, 0);
  return cases;
}

inline bool passes(Layout& layout, RedisConsole& console, const Case& item) {
  const std::vector<std::string> campaigns = {"c-1", "c-2"};
  const std::array<std::string, 2> users = {std::string(item.name), "another"};
  std::uint32_t number = 100;
  CommandBatch recording;
  for (const HistoryEvent& event : item.events) {
    layout.record(recording, users[event.user],
                  {.time = kNow - event.age,
                   .campaign = campaigns[event.campaign],
                   .fingerprint = event.fingerprint > 0 ? event.fingerprint : ++number});
  }
  console.run(recording);
  const PeerQuestion question{users[0], campaigns, kNow + item.asked_after};
  std::array<std::uint32_t, 2> counts = {};
  bool readable = true;
  CommandBatch asking([&](std::uint32_t index, const redis::Reply& reply) {
    readable = layout.read(question, index, reply, counts) && readable;
  });
  layout.ask(asking, question);
  console.run(asking);
  if (readable && counts == item.expected) return true;
  fmt::print(stderr, "{}: \"{}\": counted {} and {}, expected {} and {}{}\n", layout.traits().name,
             item.name, counts[0], counts[1], item.expected[0], item.expected[1],
             readable ? "" : " (unreadable)");
  return false;
}

/// Records and asks case by case on an empty database, and counts those that "passed", "failed" or
/// were "skipped" because the layout's semantics do not allow them. Says each failure on standard
/// error.
inline Numbers check_correctness(Layout& layout, RedisConsole& console) {
  console.call({"FLUSHDB"});
  console.load(layout.traits().scripts);
  Numbers result = {{"passed", 0}, {"failed", 0}, {"skipped", 0}};
  const LayoutTraits& traits = layout.traits();
  for (const Case& item : all_cases()) {
    const bool applies = (!item.window || *item.window == traits.window) &&
                         (item.needs == nullptr || traits.*item.needs);
    const bool passed = applies && passes(layout, console, item);
    ++result[!applies ? "skipped" : passed ? "passed" : "failed"];
  }
  console.call({"FLUSHDB"});
  return result;
}

}  // namespace fcap::bench
