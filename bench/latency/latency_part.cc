// The part `latency`: how long a check takes at a fixed rate of them, up to saturation. Open loop:
// checks start on time whatever becomes of the earlier ones, as users do, so a stall costs all
// checks that fell into it, not only the one that was under way (coordinated omission). GETs are
// coalesced. Each rate several times, its median run.
#include <sys/prctl.h>

#include "harness/part.h"
#include "path/open_loop.h"

namespace fcap::bench {
namespace {

constexpr double kHeadlineRate = 100'000;
// Rates are raised until this many in a row could not be kept up.
constexpr int kUnsustainedMax = 2;
constexpr double kRates[] = {10'000,  25'000,  50'000,  100'000, 150'000, 200'000,
                             250'000, 300'000, 350'000, 400'000, 500'000, 600'000};
// How late a thread wakes up that waits for a timer and has its core to itself: what the machine
// adds to anything that waits, however little there is to do.
Durations timer_lateness(double seconds) {
  Durations lateness;
  prctl(PR_SET_TIMERSLACK, 1UL);
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  for (auto due = Clock::now(); due < end; due = Clock::now()) {
    due += std::chrono::microseconds(200);
    std::this_thread::sleep_until(due);
    lateness.record(Clock::now() - due);
  }
  return lateness;
}

// Runs it several times, and gives the run whose p99 is the median one.
Numbers median_run(Checker& checker, const CheckWorkload& workload, double rate,
                   const PartFlags& flags) {
  std::vector<Numbers> runs;
  for (std::size_t round = 0; round < flags.rounds; ++round) {
    runs.push_back(OpenLoop(checker, workload, rate).run(flags.seconds));
  }
  std::ranges::sort(runs, {}, [](const Numbers& run) { return run.at("p99_us"); });
  return runs[(runs.size() - 1) / 2];
}

class LatencyPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    populate_compacted(console_, {.users = flags_.users});
    const CheckWorkload workload = usual_workload(flags_.users);
    const auto checker = make_checker(console_.options(), workload);
    result_.table("check_latency", "Latency of a check at a fixed rate",
                  fmt::format("Open loop, from the intended start; of {} runs the one of median "
                              "p99. First, how late a timer is that waits alone.",
                              flags_.rounds),
                  {kAnswered,
                   kP50,
                   kP99,
                   kP999,
                   {"max_us", "max µs", 1},
                   kFailed,
                   {"sustained", "kept up", 0}});
    Durations lateness = timer_lateness(flags_.seconds);
    result_.row("timer", "a timer, no check", percentiles(lateness));
    result_.number("timer_p99_us", lateness.percentile_us(0.99));
    double sustained_rate = 0;
    int unsustained = 0;
    for (const double rate : kRates) {
      if (unsustained == kUnsustainedMax) break;
      if (flags_.quick && rate != kHeadlineRate) continue;
      const Numbers run = median_run(*checker, workload, rate, flags_);
      result_.row(fmt::format("{:.0f}", rate), fmt::format("{:.0f}/s", rate), run);
      const bool sustained = run.at("sustained") > 0;
      unsustained = sustained ? 0 : unsustained + 1;
      if (sustained) sustained_rate = rate;
      if (rate != kHeadlineRate) continue;
      for (const std::string percentile : {"p99_us", "p999_us"}) {
        const std::string key = percentile + "_at_100k";
        if (sustained) {
          result_.number(key, run.at(percentile));
        } else {
          result_.missing(key, "the machine could not keep up 100,000 checks/s");
        }
      }
    }
    result_.number("sustained_checks_per_second", sustained_rate);
  }
};

const Registered kLatency("latency", run_part<LatencyPart>);

}  // namespace
}  // namespace fcap::bench
