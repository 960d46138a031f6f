// The part `stalls`: what a checking thread feels of what others do to its Checker. Store in
// memory.
//
//   swaps      one thread checks without a pause and holds its last 64 results; meanwhile sets of
//              1,000,000 rules (set_rules) and segments of 2,000,000 members (set_segments) are
//              replaced and freed. In turns with as long a time without swaps.
//   hot user   one thread checks and notes impressions of one user of whom 20,000 are unconfirmed,
//              or of a user without any; another thread checks other users
//
// Each check is measured by its wall time, the thread's own CPU time (a machine with other work to
// do does not show there), and the wall time of those in which the thread gave up its core, as for
// a lock. Beside them the lateness of a lone timer at the same time. The process is not bound to a
// core: what is swapped and freed must be able to run beside the thread that checks.
#include <ctime>

#include <sys/resource.h>

#include <fcap/checker.h>

#include "harness/part.h"
#include "path/check_load.h"

namespace fcap::bench {
namespace {

using namespace std::chrono_literals;

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

struct Felt {
  void note(const char* key, double us) { longest[key] = std::max(longest[key], us); }

  Numbers longest;  // by the table's columns, µs
  Durations walls;
};

// Runs `check` over and over for so long, beside a lone timer, and notes the longest of each.
template <typename Check>
void measure(Clock::duration time, Check check, Felt& felt) {
  const auto until = Clock::now() + time;
  double timer = 0;
  std::jthread lone([&] {
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
    const auto wall = Clock::now() - begin;
    felt.note("cpu", cpu_us() - cpu);
    felt.note("wall", micros(wall));
    felt.note("waiting", gave_up_core() != core ? micros(wall) : 0);
    felt.walls.record(wall);
  }
  lone.join();
  felt.note("timer", timer);
}

std::shared_ptr<const RuleSet> rules(std::size_t count) {
  return RuleSet::build(campaign_rules(count, 3, count / 50), {}).value();
}

std::shared_ptr<const SegmentSet> segments(std::size_t members) {
  SegmentSetBuilder builder;
  for (std::size_t i = 0; i < members; ++i) {
    (void)builder.add("s" + std::to_string(i % 4), "user-" + std::to_string(i));
  }
  return std::move(builder).finish(1);
}

std::unique_ptr<Checker> memory_checker(std::size_t shown_max) {
  CheckerOptions options;
  options.store = make_memory_store();
  options.local.shown_max = shown_max;
  options.local.shown_for = 1h;
  return Checker::create(std::move(options)).value();
}

std::string user_of(std::uint64_t i) {
  return "u" + std::to_string(i * 0x9E3779B97F4A7C15U >> 52U);
}

class Stalls {
 public:
  Stalls(const PartFlags& flags, PartResult& result) : quick_(flags.quick), result_(result) {}

  void run() {
    result_.table(
        "stalls", "The longest stall of a thread that checks",
        "One check, µs: wall time; its own CPU time; wall time of those that gave up the core, as "
        "for a lock; the lateness of a lone timer meanwhile. A swap replaces 1,000,000 rules, then "
        "segments of 2,000,000 members; the host holds its last 64 results.",
        {{"wall", "wall"}, {"cpu", "CPU"}, {"waiting", "waiting"}, {"timer", "lone timer"}});
    measure_swaps(quick_ ? 20'000 : 1'000'000, quick_ ? 20'000 : 2'000'000, quick_ ? 1 : 5);
    measure_hot_user(quick_ ? 1 : 4);
  }

 private:
  void measure_swaps(std::size_t rule_count, std::size_t members, int rounds) {
    const auto checker = memory_checker(0);
    checker->set_rules(rules(rule_count));
    checker->set_segments(segments(members));
    std::vector<CheckResult> held(64);
    std::uint64_t i = 0;
    const auto check = [&] {
      held[i % held.size()] = checker->check(user_of(i), candidates_);
      ++i;
    };
    Felt calm;
    Felt swapped;
    for (int round = 0; round < rounds; ++round) {
      auto next_rules = rules(rule_count);
      auto next_segments = segments(members);
      measure(800ms, check, calm);
      std::jthread swapper([&] {
        std::this_thread::sleep_for(100ms);
        checker->set_rules(std::move(next_rules));
        std::this_thread::sleep_for(300ms);
        checker->set_segments(std::move(next_segments));
      });
      measure(800ms, check, swapped);
    }
    result_.row("calm", "no swap", calm.longest);
    result_.row("swapped", "rules and segments are swapped", swapped.longest);
    result_.number("rules_swap_longest_stall_us",
                   std::max(swapped.longest.at("cpu"), swapped.longest.at("waiting")));
  }

  void measure_hot_user(int rounds) {
    const auto checker = memory_checker(1'000'000);
    checker->set_rules(rules(1000));
    for (int i = 0; i < 20'000; ++i) {
      checker->note_shown({"hot", candidates_[0], "i" + std::to_string(i)});
    }
    Felt usual;
    Felt hot;
    for (int round = 0; round < rounds; ++round) {
      checker->note_shown({"quiet", candidates_[0], "i"});
      measure_beside(*checker, "quiet" + std::to_string(round), usual);
      measure_beside(*checker, "hot", hot);
    }
    result_.row("usual", "others beside a user without impressions", usual.longest);
    result_.row("hot", "others beside a user with 20,000 unconfirmed", hot.longest);
    result_.number(
        "hot_user_cost_to_others_us",
        std::max(0.0, hot.walls.percentile_us(0.999) - usual.walls.percentile_us(0.999)));
  }

  // Checks of others, while a thread checks and notes this user.
  void measure_beside(Checker& checker, const std::string& user, Felt& felt) {
    std::jthread busy([&](const std::stop_token& stop) {
      for (std::uint64_t i = 0; !stop.stop_requested(); ++i) {
        (void)checker.check(user, candidates_);
        checker.note_shown({user, candidates_[i % 10], "again" + std::to_string(i % 20'000)});
      }
    });
    std::uint64_t i = 0;
    measure(
        700ms, [&] { (void)checker.check(user_of(i++), candidates_); }, felt);
  }

  const bool quick_;
  const CheckWorkload workload_ = usual_workload(1);
  const std::vector<Candidate> candidates_ = workload_.candidates();
  PartResult& result_;
};

const Registered kStalls("stalls", run_part<Stalls>);

}  // namespace
}  // namespace fcap::bench
