// stalls [--quick]: what a checking thread feels of what others do to its Checker. Store in memory.
//
//   swaps      one thread checks without a pause and holds its last 64 results; meanwhile sets of
//              1,000,000 rules (set_rules) and segments of 2,000,000 members (set_segments) are
//              replaced and freed. In turns with as long a time without swaps.
//   hot user   one thread checks and notes impressions of one user of whom 20,000 are unconfirmed,
//              or of a user without any; another thread checks other users
//
// Of each check: wall time, the thread's own CPU time (a machine with other work to do does not
// show there), and the wall time of those in which the thread gave up its core, as for a lock.
// Beside them the lateness of a lone timer at the same time. Prints one JSON object.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include <fcap/checker.h>

#include "harness/latency_histogram.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using fcap::Candidate;
using fcap::Checker;

double micros(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}
double cpu_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}
long gave_up_core() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

/// The longest of what was measured, in microseconds.
struct Longest {
  double wall = 0;
  double cpu = 0;
  double waiting = 0;
  double timer = 0;

  void take(const Longest& other) {
    wall = std::max(wall, other.wall);
    cpu = std::max(cpu, other.cpu);
    waiting = std::max(waiting, other.waiting);
    timer = std::max(timer, other.timer);
  }
  [[nodiscard]] std::string json(const std::string& name, const std::string& title) const {
    const auto text = [](double value) { return std::to_string(value); };
    return "{\"name\": \"" + name + "\", \"title\": \"" + title + "\", \"wall\": " + text(wall) +
           ", \"cpu\": " + text(cpu) + ", \"waiting\": " + text(waiting) +
           ", \"timer\": " + text(timer) + "}";
  }
};

/// Runs `check` over and over for so long, beside a lone timer. `walls`: each one's wall time.
template <typename Check>
Longest measure(Clock::duration time, Check check, fcap::bench::LatencyHistogram& walls) {
  Longest longest;
  const auto until = Clock::now() + time;
  double timer = 0;
  std::thread lone([&] {
    for (auto due = Clock::now() + 1ms; due < until; due = Clock::now() + 1ms) {
      std::this_thread::sleep_until(due);
      timer = std::max(timer, micros(Clock::now() - due));
    }
  });
  while (Clock::now() < until) {
    const long core = gave_up_core();
    const double cpu = cpu_us();
    const auto begin = Clock::now();
    check();
    const double wall = micros(Clock::now() - begin);
    longest.cpu = std::max(longest.cpu, cpu_us() - cpu);
    longest.wall = std::max(longest.wall, wall);
    if (gave_up_core() != core) longest.waiting = std::max(longest.waiting, wall);
    walls.record(static_cast<std::int64_t>(wall * 1e3));
  }
  lone.join();
  longest.timer = timer;
  return longest;
}

std::shared_ptr<const fcap::RuleSet> rules(std::size_t count) {
  fcap::RuleSetSpec spec{.version = 1};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string id = "c" + std::to_string(i);
    spec.campaigns.push_back({.id = id, .advertiser_id = "a" + std::to_string(i / 50)});
    spec.rules.push_back(
        {.id = "campaign:" + id, .target = id, .limit = 3, .window = {.length = 24h}});
  }
  return fcap::RuleSet::build(std::move(spec), {}).value();
}

std::shared_ptr<const fcap::SegmentSet> segments(std::size_t members) {
  fcap::SegmentSetBuilder builder;
  for (std::size_t i = 0; i < members; ++i) {
    (void)builder.add("s" + std::to_string(i % 4), "user-" + std::to_string(i));
  }
  return std::move(builder).finish(1);
}

std::unique_ptr<Checker> make_checker(std::size_t shown_max) {
  fcap::CheckerOptions options;
  options.store = fcap::make_memory_store();
  options.local.shown_max = shown_max;
  options.local.shown_for = 1h;
  return Checker::create(std::move(options)).value();
}

constexpr std::array<Candidate, 10> kCandidates{
    {{"c1"}, {"c2"}, {"c3"}, {"c4"}, {"c5"}, {"c6"}, {"c7"}, {"c8"}, {"c9"}, {"c10"}}};

std::string user_of(std::uint64_t i) {
  return "u" + std::to_string(i * 0x9E3779B97F4A7C15U >> 52U);
}

struct SwapResult {
  Longest calm;
  Longest swapped;
};

SwapResult measure_swaps(std::size_t rule_count, std::size_t members, int rounds) {
  const auto checker = make_checker(0);
  checker->set_rules(rules(rule_count));
  checker->set_segments(segments(members));
  std::vector<fcap::CheckResult> held(64);
  std::uint64_t i = 0;
  const auto check = [&] {
    held[i % held.size()] = checker->check(user_of(i), kCandidates);
    ++i;
  };
  SwapResult result;
  fcap::bench::LatencyHistogram walls;
  for (int round = 0; round < rounds; ++round) {
    auto next_rules = rules(rule_count);
    auto next_segments = segments(members);
    result.calm.take(measure(800ms, check, walls));
    std::jthread swapper([&] {
      std::this_thread::sleep_for(100ms);
      checker->set_rules(std::move(next_rules));
      std::this_thread::sleep_for(300ms);
      checker->set_segments(std::move(next_segments));
    });
    result.swapped.take(measure(800ms, check, walls));
  }
  return result;
}

struct HotResult {
  Longest longest;
  fcap::bench::LatencyHistogram walls;
};

void add_hot(Checker& checker, std::string_view user, HotResult& result) {
  std::atomic<bool> done{false};
  std::thread busy([&] {
    for (std::uint64_t i = 0; !done; ++i) {
      (void)checker.check(user, kCandidates);
      checker.note_shown(user, kCandidates[i % 10], "again" + std::to_string(i % 20'000));
    }
  });
  std::uint64_t i = 0;
  const auto check = [&] { (void)checker.check(user_of(i++), kCandidates); };
  result.longest.take(measure(700ms, check, result.walls));
  done = true;
  busy.join();
}

}  // namespace

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::strcmp(argv[1], "--quick") == 0;
  const SwapResult swaps =
      quick ? measure_swaps(20'000, 20'000, 1) : measure_swaps(1'000'000, 2'000'000, 5);
  const auto checker = make_checker(1'000'000);
  checker->set_rules(rules(1000));
  for (int i = 0; i < 20'000; ++i) {
    checker->note_shown("hot", kCandidates[0], "i" + std::to_string(i));
  }
  HotResult usual;
  HotResult hot;
  for (int round = 0; round < (quick ? 1 : 4); ++round) {
    checker->note_shown("quiet", kCandidates[0], "i");
    add_hot(*checker, "quiet" + std::to_string(round), usual);
    add_hot(*checker, "hot", hot);
  }
  const auto p999 = [](const HotResult& result) { return result.walls.percentile_us(0.999); };
  std::cout << "{\"rules_swap_longest_stall_us\": "
            << std::max(swaps.swapped.cpu, swaps.swapped.waiting)
            << ", \"hot_user_cost_to_others_us\": " << std::max(0.0, p999(hot) - p999(usual))
            << ", \"rows\": [" << swaps.calm.json("calm", "no swap") << ", "
            << swaps.swapped.json("swapped", "rules and segments are swapped") << ", "
            << usual.longest.json("usual", "others beside a user without impressions") << ", "
            << hot.longest.json("hot", "others beside a user with 20,000 unconfirmed") << "]}\n";
  return 0;
}
