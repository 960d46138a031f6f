// bench_latency: how long a check takes at a fixed rate of them, up to saturation. Open loop:
// checks start on time whatever becomes of the earlier ones, and the time is taken from when a
// check should have started. 10 candidates of two rules, 30 entries, completion form, GETs
// coalesced; the client on one core, Redis on another. Each rate several times, its median run.
#include <algorithm>
#include <vector>

#include "harness/part.h"
#include "latency/open_loop.h"

namespace fcap::bench {
namespace {

constexpr double kHeadlineRate = 100'000;
// Rates are raised until this many in a row could not be kept up.
constexpr int kUnsustainedMax = 2;
constexpr double kRates[] = {10'000,  25'000,  50'000,  100'000, 150'000, 200'000,
                             250'000, 300'000, 350'000, 400'000, 500'000, 600'000};

Numbers percentiles(Durations& durations) {
  return {{"p50_us", durations.percentile_us(0.5)},
          {"p99_us", durations.percentile_us(0.99)},
          {"p999_us", durations.percentile_us(0.999)},
          {"max_us", durations.percentile_us(1)}};
}

// Of several runs, the one whose p99 is the median one.
Numbers median_run(Checker& checker, const CheckWorkload& workload, double rate,
                   const PartFlags& flags) {
  std::vector<Numbers> runs;
  for (std::size_t round = 0; round < flags.rounds; ++round) {
    OpenLoopResult run = run_open_loop(checker, workload, rate, flags.seconds);
    Numbers& numbers = runs.emplace_back(percentiles(run.latency));
    numbers["answered_per_second"] = run.answered_per_second;
    numbers["failed"] = run.failed;
    numbers["sustained"] = run.sustained ? 1 : 0;
  }
  std::ranges::sort(runs, {}, [](const Numbers& run) { return run.at("p99_us"); });
  return runs[(runs.size() - 1) / 2];
}

void measure_latency(const PartFlags& flags, PartResult& result) {
  const PartRedis redis;
  RedisConsole console(redis);
  populate_compacted(console, {.users = flags.users});
  const CheckWorkload workload = usual_workload(flags.users);
  const auto checker = make_checker(console, workload, usual_mget_keys_max());
  result.table("check_latency", "Latency of a check at a fixed rate",
               "Open loop, from the intended start; of " + std::to_string(flags.rounds) +
                   " runs the one of median p99. First, how late a timer is that waits alone.",
               {{"answered_per_second", "answered/s", 0},
                {"p50_us", "p50 µs", 1},
                {"p99_us", "p99 µs", 1},
                {"p999_us", "p99.9 µs", 1},
                {"max_us", "max µs", 1},
                {"failed", "failed", 0},
                {"sustained", "kept up", 0}});
  Durations lateness = timer_lateness(flags.seconds);
  result.row("check_latency", "timer", "a timer, no check", percentiles(lateness));
  result.number("timer_p99_us", lateness.percentile_us(0.99));
  double sustained_rate = 0;
  int unsustained = 0;
  for (const double rate : kRates) {
    if (unsustained == kUnsustainedMax) break;
    if (flags.quick && rate != kHeadlineRate) continue;
    const Numbers run = median_run(*checker, workload, rate, flags);
    const std::string per_second = std::to_string(static_cast<int>(rate));
    result.row("check_latency", per_second, per_second + "/s", run);
    const bool sustained = run.at("sustained") > 0;
    unsustained = sustained ? 0 : unsustained + 1;
    if (sustained) sustained_rate = rate;
    if (rate != kHeadlineRate) continue;
    if (sustained) {
      result.number("p99_us_at_100k", run.at("p99_us"));
      result.number("p999_us_at_100k", run.at("p999_us"));
    } else {
      for (const char* key : {"p99_us_at_100k", "p999_us_at_100k"}) {
        result.missing(key, "the machine could not keep up 100,000 checks/s");
      }
    }
  }
  result.number("sustained_checks_per_second", sustained_rate);
}

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::PartFlags flags;
  CLI::App app("How long a check takes at a fixed rate.", "bench_latency");
  return run_part(app, argc, argv, flags, [&](fcap::bench::PartResult& result) {
    fcap::bench::measure_latency(flags, result);
  });
}
