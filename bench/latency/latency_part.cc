// bench_latency: how long a check takes at a fixed rate of them, up to saturation. Open loop:
// checks start on time whatever becomes of the earlier ones, and the time is taken from when a
// check should have started. 10 candidates of two rules, 30 entries, completion form, GETs
// coalesced; the client on one core, Redis on another. Each rate several times, its median run.
#include <algorithm>
#include <memory>
#include <vector>

#include "harness/interleave.h"
#include "harness/part_flags.h"
#include "harness/part_result.h"
#include "latency/open_loop.h"
#include "latency/timer_lateness.h"

namespace fcap::bench {
namespace {

constexpr double kHeadlineRate = 100'000;
// Rates are raised until this many in a row could not be kept up.
constexpr int kUnsustainedMax = 2;

const std::vector<double>& rates() {
  static const std::vector<double> all = {10'000,  25'000,  50'000,  100'000, 150'000, 200'000,
                                          250'000, 300'000, 350'000, 400'000, 500'000, 600'000};
  return all;
}

/// The run whose p99 is the median one.
OpenLoopResult median_run(std::vector<OpenLoopResult> runs) {
  std::sort(runs.begin(), runs.end(), [](const OpenLoopResult& a, const OpenLoopResult& b) {
    return a.latency.percentile_us(0.99) < b.latency.percentile_us(0.99);
  });
  return runs[(runs.size() - 1) / 2];
}

class LatencyPart {
 public:
  explicit LatencyPart(const PartFlags& flags) : flags_(flags) {}

  int run() {
    RedisConsole console(flags_.redis);
    populate_compacted(console, {.users = flags_.users});
    const CheckWorkload workload = usual_workload(flags_.users);
    const std::unique_ptr<Checker> checker = make_checker(console, workload, usual_mget_keys_max());
    result_.table("check_latency", "Latency of a check at a fixed rate",
                  "Open loop, from the intended start; of " + std::to_string(flags_.rounds) +
                      " runs the one of median p99. First, how late a timer is that waits alone.",
                  {{"answered_per_second", "answered/s", 0},
                   {"p50_us", "p50 µs", 1},
                   {"p99_us", "p99 µs", 1},
                   {"p999_us", "p99.9 µs", 1},
                   {"max_us", "max µs", 1},
                   {"failed", "failed", 0},
                   {"sustained", "kept up", 0}});
    add_timer();
    int unsustained = 0;
    for (const double rate : rates()) {
      if (flags_.quick && rate != kHeadlineRate) continue;
      std::vector<OpenLoopResult> runs;
      for (std::size_t round = 0; round < flags_.rounds; ++round) {
        runs.push_back(run_open_loop(*checker, workload, rate, flags_.seconds));
      }
      const OpenLoopResult run = median_run(std::move(runs));
      add(rate, run);
      unsustained = run.sustained ? 0 : unsustained + 1;
      if (unsustained == kUnsustainedMax) break;
    }
    result_.number("sustained_checks_per_second", sustained_);
    result_.write(flags_.json);
    return 0;
  }

 private:
  void add_timer() {
    const LatencyHistogram lateness = timer_lateness(flags_.seconds);
    const double p99 = lateness.percentile_us(0.99);
    result_.row("check_latency", "timer", "a timer, no check",
                {{"p50_us", lateness.percentile_us(0.5)},
                 {"p99_us", p99},
                 {"p999_us", lateness.percentile_us(0.999)},
                 {"max_us", lateness.max_us()}});
    result_.number("timer_p99_us", p99);
  }

  void add(double rate, const OpenLoopResult& run) {
    const double p50 = run.latency.percentile_us(0.5);
    const double p99 = run.latency.percentile_us(0.99);
    const double p999 = run.latency.percentile_us(0.999);
    const auto per_second = static_cast<std::size_t>(rate);
    result_.row("check_latency", std::to_string(per_second), std::to_string(per_second) + "/s",
                {{"answered_per_second", run.answered_per_second},
                 {"p50_us", p50},
                 {"p99_us", p99},
                 {"p999_us", p999},
                 {"max_us", run.latency.max_us()},
                 {"failed", static_cast<double>(run.failed)},
                 {"sustained", run.sustained ? 1.0 : 0.0}});
    if (run.sustained) sustained_ = std::max(sustained_, rate);
    if (rate != kHeadlineRate) return;
    if (run.sustained) {
      result_.number("p99_us_at_100k", p99);
      result_.number("p999_us_at_100k", p999);
    } else {
      result_.missing("p99_us_at_100k", "the machine could not keep up 100,000 checks/s");
    }
  }

  const PartFlags& flags_;
  PartResult result_{"latency"};
  double sustained_ = 0;
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::PartFlags flags;
  CLI::App app("How long a check takes at a fixed rate.", "bench_latency");
  return fcap::bench::run_part(app, argc, argv, flags,
                               [&] { return fcap::bench::LatencyPart(flags).run(); });
}
