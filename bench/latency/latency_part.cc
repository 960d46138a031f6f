// bench_latency: how long a check takes at a fixed rate of them, up to saturation. Open loop:
// checks start on time whatever becomes of the earlier ones, as users do, and the time is taken
// from when a check should have started: a stall costs all checks that fell into it, not only the
// one that was under way (coordinated omission). 10 candidates of two rules, 30 entries, completion
// form, GETs coalesced; the client on one core, Redis on another. Each rate several times, its
// median run.
#include <random>

#include <sys/prctl.h>

#include "harness/part.h"
#include "path/check_load.h"

namespace fcap::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kHeadlineRate = 100'000;
// Rates are raised until this many in a row could not be kept up.
constexpr int kUnsustainedMax = 2;
constexpr double kRates[] = {10'000,  25'000,  50'000,  100'000, 150'000, 200'000,
                             250'000, 300'000, 350'000, 400'000, 500'000, 600'000};
// A thread that starts checks and sleeps in between shares the client's core with the I/O thread;
// waking up for each check would take the core from it. What a check waits for the next waking
// counts as its latency.
constexpr std::chrono::nanoseconds kSleepMin{50'000};
// Not measured: connections, caches and the coalescing settle.
constexpr double kWarmUpSeconds = 0.2;
constexpr std::chrono::milliseconds kLagMax{100};
constexpr std::size_t kInFlightMax = 60'000;

Numbers percentiles(Durations& durations) {
  return {{"p50_us", durations.percentile_us(0.5)},
          {"p99_us", durations.percentile_us(0.99)},
          {"p999_us", durations.percentile_us(0.999)},
          {"max_us", durations.percentile_us(1)}};
}

// Checks at a fixed rate; latencies are those from the intended start of each to its answer.
class OpenLoop {
 public:
  OpenLoop(Checker& checker, const CheckWorkload& workload, double per_second)
      : checker_(checker),
        workload_(workload),
        candidates_(workload.candidates()),
        gap_ns_(1e9 / per_second) {}

  Numbers run(double seconds) {
    prctl(PR_SET_TIMERSLACK, 1UL);
    begin_ = Clock::now() + std::chrono::milliseconds(1);
    const auto warm_up = static_cast<std::uint64_t>(kWarmUpSeconds * 1e9 / gap_ns_);
    const auto total = warm_up + static_cast<std::uint64_t>(seconds * 1e9 / gap_ns_);
    measured_from_ = intended(warm_up);
    latency_.reserve(total - warm_up);
    bool sustained = true;
    for (std::uint64_t i = 0; i < total && sustained;) {
      const Clock::time_point now = Clock::now();
      while (i < total && intended(i) <= now) start(intended(i++));
      sustained = i == total || now - intended(i) < kLagMax;
      // Bounded, so that a rate far beyond saturation does not only fill queues.
      sustained = sustained && pending_.load(std::memory_order_relaxed) < kInFlightMax;
      if (i < total) std::this_thread::sleep_until(std::max(intended(i), now + kSleepMin));
    }
    while (pending_.load(std::memory_order_acquire) > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const auto took = std::chrono::duration<double>(last_answer_ - measured_from_).count();
    Numbers numbers = percentiles(latency_);
    numbers["answered_per_second"] = took > 0 ? static_cast<double>(latency_.count()) / took : 0;
    numbers["failed"] = failed_;
    sustained = sustained && last_answer_ - intended(total) < kLagMax;
    numbers["sustained"] = sustained ? 1 : 0;
    return numbers;
  }

 private:
  [[nodiscard]] Clock::time_point intended(std::uint64_t check) const {
    return begin_ + std::chrono::nanoseconds(
                        static_cast<std::int64_t>(static_cast<double>(check) * gap_ns_));
  }

  void start(Clock::time_point intended) {
    pending_.fetch_add(1, std::memory_order_relaxed);
    checker_.check_async(
        workload_.user(random_()), candidates_, {},
        [this, intended](const CheckResult& result) { answered(intended, result.reason); });
  }

  // On the I/O thread alone: there is one.
  void answered(Clock::time_point intended, Reason reason) {
    if (intended >= measured_from_) {
      last_answer_ = Clock::now();
      latency_.record(last_answer_ - intended);
      if (reason != Reason::kPassed) ++failed_;
    }
    pending_.fetch_sub(1, std::memory_order_release);
  }

  Checker& checker_;
  const CheckWorkload& workload_;
  const std::vector<Candidate> candidates_;
  const double gap_ns_;
  std::minstd_rand random_;
  Clock::time_point begin_;
  Clock::time_point measured_from_;
  Clock::time_point last_answer_;
  std::atomic<std::size_t> pending_{0};
  Durations latency_;
  double failed_ = 0;
};

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

// Of several runs, the one whose p99 is the median one.
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
                  {{"answered_per_second", "answered/s", 0},
                   {"p50_us", "p50 µs", 1},
                   {"p99_us", "p99 µs", 1},
                   {"p999_us", "p99.9 µs", 1},
                   {"max_us", "max µs", 1},
                   {"failed", "failed", 0},
                   {"sustained", "kept up", 0}});
    Durations lateness = timer_lateness(flags_.seconds);
    result_.row("check_latency", "timer", "a timer, no check", percentiles(lateness));
    result_.number("timer_p99_us", lateness.percentile_us(0.99));
    double sustained_rate = 0;
    int unsustained = 0;
    for (const double rate : kRates) {
      if (unsustained == kUnsustainedMax) break;
      if (flags_.quick && rate != kHeadlineRate) continue;
      const Numbers run = median_run(*checker, workload, rate, flags_);
      result_.row("check_latency", fmt::format("{:.0f}", rate), fmt::format("{:.0f}/s", rate), run);
      const bool sustained = run.at("sustained") > 0;
      unsustained = sustained ? 0 : unsustained + 1;
      if (sustained) sustained_rate = rate;
      if (rate == kHeadlineRate) headline(run, sustained);
    }
    result_.number("sustained_checks_per_second", sustained_rate);
  }

 private:
  void headline(const Numbers& run, bool sustained) {
    for (const std::string percentile : {"p99_us", "p999_us"}) {
      if (sustained) {
        result_.number(percentile + "_at_100k", run.at(percentile));
      } else {
        result_.missing(percentile + "_at_100k", "the machine could not keep up 100,000 checks/s");
      }
    }
  }
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  return fcap::bench::run_part<fcap::bench::LatencyPart>(argc, argv,
                                                         "How long a check takes at a fixed rate.");
}
