// The part `scaling`: how the cost of a check grows, one series per table. What does not vary is as
// in the part `check`.
#include "harness/part.h"
#include "path/check_load.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kChecksInFlight = 64;
constexpr std::size_t kCandidates = 10;

// `count` campaign rules, dealt to the candidates in turn; each window is of another length, so
// that none can be counted together.
std::shared_ptr<const RuleSet> rules_on_candidates(std::size_t count) {
  RuleSetSpec spec;
  for (std::size_t i = 0; i < count; ++i) {
    spec.rules.push_back({.id = "rule-" + std::to_string(i),
                          .target = campaign_id(i % kCandidates),
                          .limit = 1000,
                          .window = {.length = std::chrono::hours(1 + i / kCandidates)}});
  }
  return RuleSet::build(std::move(spec), {}).value();
}

class ScalingPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    populate_compacted(console_, {.users = flags_.users});
    callers();
    gets_per_mget();
    series("check_candidates", "Checks per second, by candidates",
           "Candidates in one request, two rules each.", {1, 10, 100, 1000},
           [](CheckWorkload& workload, std::size_t count) {
             workload.campaigns = campaign_ids(count);
             workload.rules = make_rules(count);
           });
    series("check_rules", "Checks per second, by rules",
           "Rules that apply to the 10 candidates of a request together, each of a window of its "
           "own.",
           {1, 10, 100, 1000}, [](CheckWorkload& workload, std::size_t count) {
             workload.rules = rules_on_candidates(count);
           });
    series("check_entries", "Checks per second, by the length of the ledger",
           "Entries of each user's ledger, of 10 campaigns, compacted.",
           {0, 10, 30, 100, 300, 1000, 2000}, [this](CheckWorkload& workload, std::size_t count) {
             Population population;
             population.users = std::min<std::size_t>(flags_.users, flags_.quick ? 200 : 2000);
             population.impressions = count / population.campaigns;
             population.key_prefix = "entries-" + std::to_string(count);
             populate_compacted(console_, population);
             workload.users = users_in_turn(population.users);
             workload.key_prefix = population.key_prefix;
           });
  }

 private:
  void callers() {
    result_.table("check_callers", "Checks per second, by callers",
                  "Blocking: check() from as many threads. In flight: check_async().",
                  throughput_columns());
    const RedisOptions& usual = console_.options();
    for (const RedisOptions& redis : {usual, coalescing(usual, 1)}) {
      const char* const suffix = redis.mget_keys_max > 1 ? "mget" : "get";
      const char* const how = redis.mget_keys_max > 1 ? "coalesced" : "plain GET";
      const auto checker = make_checker(redis, usual_);
      for (const std::size_t callers : steps({1, 8, 64})) {
        const std::vector<Ask> asks(callers, blocking_check(*checker, usual_));
        measure<BlockingCallers>(
            fmt::format("blocking_{}_{}", callers, suffix),
            fmt::format("{} caller{}, {}", callers, callers == 1 ? "" : "s", how), usual_, asks);
      }
      for (const std::size_t in_flight : steps({64, 256})) {
        measure<AsyncChecks>(fmt::format("in_flight_{}_{}", in_flight, suffix),
                             fmt::format("{} in flight, {}", in_flight, how), redis, usual_,
                             in_flight);
      }
    }
  }

  // Where much of what is in flight fits into one MGET, client and server take turns.
  void gets_per_mget() {
    result_.table("check_mget", "Checks per second, by GETs that may travel as one MGET",
                  "1: plain GET. As many as were waiting, up to this.", throughput_columns());
    for (const std::size_t in_flight : {64U, 256U}) {
      for (const std::size_t keys : steps({1, 4, 8, 16, 32, 64})) {
        measure<AsyncChecks>(fmt::format("in_flight_{}_mget_{}", in_flight, keys),
                             fmt::format("{} in flight, up to {}", in_flight, keys),
                             coalescing(console_.options(), keys), usual_, in_flight);
      }
    }
  }

  // `change` makes the workload of a step from the usual one.
  template <typename Change>
  void series(const std::string& table, const std::string& title, const std::string& note,
              const std::vector<std::size_t>& all, Change change) {
    result_.table(table, title, note, throughput_columns());
    for (const std::size_t step : steps(all)) {
      CheckWorkload workload = usual_;
      change(workload, step);
      const std::string name = std::to_string(step);
      measure<AsyncChecks>(name, name, console_.options(), workload, kChecksInFlight);
    }
  }

  // Each by itself.
  template <typename Requests, typename... From>
  void measure(const std::string& name, const std::string& title, From&&... from) {
    compare<Requests>(name, title, std::forward<From>(from)...);
    take_turns();
  }

  const CheckWorkload usual_ = usual_workload(flags_.users);
};

const Registered kScaling("scaling", run_part<ScalingPart>);

}  // namespace
}  // namespace fcap::bench
