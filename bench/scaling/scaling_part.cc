// bench_scaling: how the cost of a check grows, one series a table. What does not vary is as in
// bench_check: 10 candidates of two rules, 30 entries, 64 in flight, GETs coalesced.
//
//   callers      blocking: 1, 8, 64; completion form: 64 and 256 in flight; coalesced and not
//   mget         1 to 64 GETs that may travel as one MGET, 64 and 256 in flight
//   candidates   1, 10, 100, 1,000 of two rules each
//   rules        1, 10, 100, 1,000 that apply to the 10 candidates together
//   entries      ledgers of 0 to 2,000 entries of 10 campaigns
#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "harness/interleave.h"
#include "harness/part_flags.h"
#include "harness/part_result.h"
#include "path/check_load.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kInFlight = 64;
constexpr std::size_t kCandidates = 10;

/// `count` campaign rules, dealt to the candidates in turn; each window is of another length, so
/// that none can be counted together.
std::shared_ptr<const RuleSet> rules_on_candidates(std::size_t count) {
  RuleSetSpec spec;
  for (std::size_t i = 0; i < count; ++i) {
    spec.rules.push_back({.id = "rule-" + std::to_string(i),
                          .target = campaign_id(i % kCandidates),
                          .limit = 1000,
                          .window = {.length = std::chrono::hours(1 + i / kCandidates)}});
  }
  auto built = RuleSet::build(std::move(spec), {});
  if (!built.ok()) throw std::runtime_error(built.status().text());
  return built.value();
}

class ScalingPart {
 public:
  explicit ScalingPart(const PartFlags& flags)
      : flags_(flags), console_(flags.redis), usual_(usual_workload(flags.users)) {}

  int run() {
    populate_compacted(console_, {.users = flags_.users});
    callers();
    coalescing();
    candidates();
    rules();
    entries();
    result_.write(flags_.json);
    return 0;
  }

 private:
  // Quick runs take the first and one further step.
  std::vector<std::size_t> steps(std::vector<std::size_t> all) const {
    if (flags_.quick) all.resize(2);
    return all;
  }

  Measurement turns(Load& load) {
    std::vector<Contender> one = {{"it", [&] { return measure(load, console_, flags_.seconds); }}};
    return Interleaved(std::move(one), flags_.rounds).median("it");
  }

  void callers() {
    result_.table("check_callers", "Checks per second, by callers",
                  "Blocking: check() from as many threads. In flight: check_async().",
                  throughput_columns());
    for (const std::size_t mget : {usual_mget_keys_max(), std::size_t{1}}) {
      const std::string suffix = mget > 1 ? "_mget" : "_get";
      const std::string how = mget > 1 ? ", coalesced" : ", plain GET";
      for (const std::size_t callers : steps({1, 8, 64})) {
        BlockingChecks load(console_, usual_, callers, mget);
        add("check_callers", "blocking_" + std::to_string(callers) + suffix,
            std::to_string(callers) + (callers == 1 ? " caller" : " callers") + how, turns(load));
      }
      for (const std::size_t in_flight : steps({64, 256})) {
        AsyncChecks load(console_, usual_, in_flight, mget);
        add("check_callers", "in_flight_" + std::to_string(in_flight) + suffix,
            std::to_string(in_flight) + " in flight" + how, turns(load));
      }
    }
  }

  // Where much of what is in flight fits into one MGET, client and server take turns.
  void coalescing() {
    result_.table("check_mget", "Checks per second, by GETs that may travel as one MGET",
                  "1: plain GET. As many as were waiting, up to this.", throughput_columns());
    for (const std::size_t in_flight : {64U, 256U}) {
      for (const std::size_t keys : steps({1, 4, 8, 16, 32, 64})) {
        AsyncChecks load(console_, usual_, in_flight, keys);
        add("check_mget",
            "in_flight_" + std::to_string(in_flight) + "_mget_" + std::to_string(keys),
            std::to_string(in_flight) + " in flight, up to " + std::to_string(keys), turns(load));
      }
    }
  }

  void candidates() {
    result_.table("check_candidates", "Checks per second, by candidates",
                  "Candidates in one request, two rules each.", throughput_columns());
    for (const std::size_t count : steps({1, 10, 100, 1000})) {
      CheckWorkload workload = usual_;
      workload.campaigns = campaign_ids(count);
      workload.rules = make_rules(count);
      step("check_candidates", workload, count);
    }
  }

  void rules() {
    result_.table("check_rules", "Checks per second, by rules",
                  "Rules that apply to the 10 candidates of a request together, each of a window "
                  "of its own.",
                  throughput_columns());
    for (const std::size_t count : steps({1, 10, 100, 1000})) {
      CheckWorkload workload = usual_;
      workload.rules = rules_on_candidates(count);
      step("check_rules", workload, count);
    }
  }

  void entries() {
    result_.table("check_entries", "Checks per second, by the length of the ledger",
                  "Entries of each user's ledger, of 10 campaigns, compacted.",
                  throughput_columns());
    for (const std::size_t count : steps({0, 10, 30, 100, 300, 1000, 2000})) {
      Population population;
      population.users = std::min<std::size_t>(flags_.users, flags_.quick ? 200 : 2000);
      population.impressions = count / population.campaigns;
      population.key_prefix = "entries-" + std::to_string(count);
      populate_compacted(console_, population);
      CheckWorkload workload = usual_;
      workload.users = users_in_turn(population.users);
      workload.key_prefix = population.key_prefix;
      step("check_entries", workload, count);
    }
  }

  void step(const std::string& table, const CheckWorkload& workload, std::size_t value) {
    AsyncChecks load(console_, workload, kInFlight, usual_mget_keys_max());
    add(table, std::to_string(value), std::to_string(value), turns(load));
  }

  void add(const std::string& table, const std::string& name, const std::string& title,
           const Measurement& measured) {
    if (measured.failed > 0) {
      throw std::runtime_error(table + " " + name + ": " + std::to_string(measured.failed) +
                               " checks failed");
    }
    result_.row(table, name, title, throughput_numbers(measured));
  }

  const PartFlags& flags_;
  PartResult result_{"scaling"};
  RedisConsole console_;
  const CheckWorkload usual_;
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::PartFlags flags;
  CLI::App app("How the cost of a check grows.", "bench_scaling");
  return fcap::bench::run_part(app, argc, argv, flags,
                               [&] { return fcap::bench::ScalingPart(flags).run(); });
}
