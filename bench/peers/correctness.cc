#include "peers/correctness.h"

#include <array>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace fcap::bench {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// 2026-01-31T12:00:00Z, a Saturday.
constexpr Instant kNow = instant_from_ms(1'769'860'800'000);
constexpr Instant kMonthBegins = instant_from_ms(1'767'225'600'000);

struct Event {
  std::size_t campaign;  ///< index into kCampaigns
  Instant time;
  std::uint32_t fingerprint;
  std::size_t user = 0;
};

struct Case {
  std::string_view name;
  std::vector<Event> events;  ///< in the order of recording
  std::array<std::uint32_t, 2> expected;
  Instant now = kNow;
  std::optional<WindowKind> window = {};  ///< none: of every window
  bool needs_counting_once = false;
  bool needs_late = false;
};

const std::vector<std::string>& campaigns() {
  static const std::vector<std::string> ids = {"c-1", "c-2"};
  return ids;
}

// What holds in every window.
std::vector<Case> common_cases() {
  return {
      {.name = "no history", .events = {}, .expected = {0, 0}},
      {.name = "one event", .events = {{0, kNow - hours(1), 1}}, .expected = {1, 0}},
      {.name = "events of one campaign add up",
       .events = {{0, kNow - hours(3), 1}, {0, kNow - hours(2), 2}, {0, kNow - hours(1), 3}},
       .expected = {3, 0}},
      {.name = "campaigns are counted apart",
       .events = {{0, kNow - hours(3), 1}, {1, kNow - hours(2), 2}, {1, kNow - hours(1), 3}},
       .expected = {1, 2}},
      {.name = "another user's events do not count",
       .events = {{0, kNow - hours(2), 1}, {0, kNow - hours(1), 2, 1}},
       .expected = {1, 0}},
      {.name = "two events of one instant are two",
       .events = {{0, kNow - hours(1), 1}, {0, kNow - hours(1), 2}},
       .expected = {2, 0}},
      {.name = "an event that comes twice counts once",
       .events = {{0, kNow - hours(1), 1}, {0, kNow - hours(1), 1}},
       .expected = {1, 0},
       .needs_counting_once = true},
      {.name = "an event that comes late counts",
       .events = {{0, kNow - hours(1), 1}, {0, kNow - hours(2), 2}},
       .expected = {2, 0},
       .needs_late = true},
      {.name = "a late event of before the window does not count",
       .events = {{0, kNow - hours(1), 1}, {0, kMonthBegins - hours(1), 2}},
       .expected = {1, 0},
       .window = WindowKind::kSliding,
       .needs_late = true},
  };
}

std::vector<Case> window_cases() {
  return {
      {.name = "sliding: an event exactly one window old no longer counts",
       .events = {{0, kNow - hours(24), 1},
                  {1, kNow - hours(24) + std::chrono::milliseconds(1), 2}},
       .expected = {0, 1},
       .window = WindowKind::kSliding},
      {.name = "sliding: the window moves with the asking",
       .events = {{0, kNow - hours(24), 1}, {0, kNow - hours(1), 2}},
       .expected = {2, 0},
       .now = kNow - seconds(1),
       .window = WindowKind::kSliding},
      {.name = "calendar: the month begins with its first instant",
       .events = {{0, kMonthBegins - seconds(1), 1}, {1, kMonthBegins, 2}},
       .expected = {0, 1},
       .window = WindowKind::kCalendar},
      {.name = "calendar: a new month starts from none",
       .events = {{0, kNow - hours(1), 1}, {1, kNow, 2}},
       .expected = {0, 0},
       .now = kNow + hours(12),
       .window = WindowKind::kCalendar},
      {.name = "calendar: a late event counts in its own month",
       .events = {{0, kNow, 1}, {0, kMonthBegins - minutes(1), 2}},
       .expected = {1, 0},
       .window = WindowKind::kCalendar,
       .needs_late = true},
      {.name = "fixed: the window closes one length after its first event",
       .events = {{0, kNow - days(30), 1}, {1, kNow - days(30) + seconds(1), 2}},
       .expected = {0, 1},
       .window = WindowKind::kFixed},
      {.name = "fixed: later events do not move the end",
       .events = {{0, kNow - days(30), 1}, {0, kNow - days(1), 2}},
       .expected = {0, 0},
       .window = WindowKind::kFixed},
      {.name = "fixed: the next event after the end opens a new window",
       .events = {{0, kNow - days(31), 1}, {0, kNow - days(2), 2}, {0, kNow - hours(1), 3}},
       .expected = {1, 0},
       .window = WindowKind::kFixed},
  };
}

std::string user_of(std::size_t case_number, std::size_t user) {
  return "case-" + std::to_string(case_number) + "-user-" + std::to_string(user);
}

bool allowed(const Layout& layout, const Case& item) {
  return (!item.window || *item.window == layout.window()) &&
         (!item.needs_counting_once || layout.counts_once()) &&
         (!item.needs_late || layout.takes_late());
}

bool passes(Layout& layout, RedisConsole& console, const Case& item, std::size_t number) {
  for (const Event& event : item.events) {
    std::string wire;
    const Impression impression{event.time, campaigns()[event.campaign], event.fingerprint};
    const std::string user = user_of(number, event.user);
    const std::uint32_t commands = layout.record(wire, user, {&impression, 1});
    console.run(std::move(wire), commands);
  }
  const std::string user = user_of(number, 0);
  const Question question{user, campaigns(), item.now};
  std::array<std::uint32_t, 2> counts = {};
  bool readable = true;
  std::string wire;
  const std::uint32_t commands = layout.ask(wire, question);
  console.run(std::move(wire), commands, [&](std::uint32_t index, const redis::Reply& reply) {
    readable = layout.read(question, index, reply, counts) && readable;
  });
  if (readable && counts == item.expected) return true;
  std::fprintf(stderr, "%s: \"%s\": counted %u and %u, expected %u and %u%s\n",
               std::string(layout.name()).c_str(), std::string(item.name).c_str(), counts[0],
               counts[1], item.expected[0], item.expected[1], readable ? "" : " (unreadable)");
  return false;
}

}  // namespace

Correctness check_correctness(Layout& layout, RedisConsole& console) {
  console.call({"FLUSHDB"});
  for (const std::string_view script : layout.scripts()) console.call({"SCRIPT", "LOAD", script});
  std::vector<Case> cases = common_cases();
  for (Case& item : window_cases()) cases.push_back(std::move(item));
  Correctness result;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!allowed(layout, cases[i])) {
      ++result.skipped;
    } else if (passes(layout, console, cases[i], i)) {
      ++result.passed;
    } else {
      ++result.failed;
    }
  }
  console.call({"FLUSHDB"});
  return result;
}

}  // namespace fcap::bench
