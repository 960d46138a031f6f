// bench_check: checks per second over one client core and one Redis core, beside the peers and the
// limits, taking turns. 10 candidates per request, 64 requests in flight, 100,000 users of 10
// campaigns x 3 impressions. The ledger answers two rules per candidate; each peer answers one,
// which is what its layout is for.
//
//   ledger        libfcap's Checker, completion form: GETs coalesced into MGETs, and not
//   peers         bench/peers, each over the same transport as the Checker; --verify: only their
//                 cases of correctness, which a measured run begins with too
//   limits        redis-benchmark, one connection, same values: GET; MGET of as many keys as were
//                 coalesced; SET
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>

#include "harness/interleave.h"
#include "harness/part_flags.h"
#include "harness/part_result.h"
#include "harness/redis_benchmark.h"
#include "ledger/user_key.h"
#include "path/check_load.h"
#include "peers/correctness.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kInFlight = 64;
constexpr std::size_t kManyInFlight = 256;
constexpr int kVerifyDatabase = 15;
constexpr int kWrittenDatabase = 14;

bool verify(PartResult& result, const std::string& redis) {
  RedisConsole console(redis, kVerifyDatabase);
  result.table("correctness", "Cases of correctness",
               "Each layout on the cases that its semantics allow, before anything is measured.",
               {{"passed", "passed"}, {"failed", "failed"}, {"skipped", "not applicable"}});
  std::vector<std::unique_ptr<Layout>> layouts = make_peers();
  for (const WindowKind window :
       {WindowKind::kSliding, WindowKind::kCalendar, WindowKind::kFixed}) {
    layouts.push_back(make_ledger_layout(window));
  }
  const std::map<WindowKind, std::string> window_names = {{WindowKind::kSliding, "sliding"},
                                                          {WindowKind::kCalendar, "calendar"},
                                                          {WindowKind::kFixed, "fixed"}};
  bool all = true;
  for (const auto& layout : layouts) {
    const Correctness cases = check_correctness(*layout, console);
    const std::string& window = window_names.at(layout->window());
    std::string name(layout->name());
    if (name == "ledger") name += "_" + window;
    result.row("correctness", name, std::string(layout->title()) + " (" + window + " window)",
               {{"passed", static_cast<double>(cases.passed)},
                {"failed", static_cast<double>(cases.failed)},
                {"skipped", static_cast<double>(cases.skipped)}});
    all = all && cases.failed == 0 && cases.passed > 0;
  }
  return all;
}

/// A layout in a database of its own, so that each has the server's tables to itself.
struct Entrant {
  std::unique_ptr<Layout> layout;
  std::unique_ptr<RedisConsole> console;
  std::unique_ptr<Load> load;
};

std::vector<Entrant> populated_peers(const PartFlags& flags, const CheckWorkload& workload) {
  std::vector<Entrant> entrants;
  for (auto& layout : make_peers()) {
    Entrant entrant;
    entrant.layout = std::move(layout);
    const int database = static_cast<int>(entrants.size()) + 1;
    entrant.console = std::make_unique<RedisConsole>(flags.redis, database);
    populate(*entrant.console, *entrant.layout, {.users = flags.users});
    entrant.load =
        std::make_unique<LayoutRequests>(*entrant.console, *entrant.layout, workload, kInFlight);
    entrants.push_back(std::move(entrant));
  }
  return entrants;
}

/// How many keys an MGET of the coalescing Checker has, on average.
double coalesced_keys(Load& load, RedisConsole& console, double seconds) {
  console.call({"CONFIG", "RESETSTAT"});
  const Measurement measured = measure(load, console, seconds);
  const std::string calls = console.info("commandstats", "cmdstat_mget");
  const std::string hits = console.info("stats", "keyspace_hits");
  if (calls.empty() || measured.requests_per_second == 0) return 1;
  return std::stod(hits) / std::stod(calls.substr(calls.find('=') + 1));
}

std::string key_pattern() {
  const std::string id = user_id(0);
  std::string key;
  ledger::user_key("fcap", id.substr(0, id.size() - 12) + "__rand_int__", key);
  return key;
}

class CheckPart {
 public:
  explicit CheckPart(const PartFlags& flags) : flags_(flags) {}

  int run(bool verify_only) {
    const bool correct = verify(result_, flags_.redis);
    if (!correct || verify_only) {
      result_.write(flags_.json);
      if (!correct) std::fprintf(stderr, "a layout counts wrongly: nothing is measured\n");
      return correct ? 0 : 1;
    }
    const CheckWorkload workload = usual_workload(flags_.users);
    RedisConsole console(flags_.redis);
    populate_compacted(console, {.users = flags_.users});
    const std::vector<Entrant> peers = populated_peers(flags_, workload);

    AsyncChecks coalesced(console, workload, kInFlight, usual_mget_keys_max());
    AsyncChecks plain(console, workload, kInFlight, 1);
    AsyncChecks many(console, workload, kManyInFlight, usual_mget_keys_max());
    LayoutRequests many_zset(*peers.front().console, *peers.front().layout, workload,
                             kManyInFlight);
    keys_ = coalesced_keys(coalesced, console, flags_.seconds / 2);
    make_limits(console);
    std::vector<Contender> contenders = {contender("ledger_mget", coalesced, console),
                                         contender("ledger_get", plain, console),
                                         contender("ledger_256", many, console),
                                         contender("zset_256", many_zset, *peers.front().console)};
    for (const Entrant& peer : peers) {
      contenders.push_back(contender(std::string(peer.layout->name()), *peer.load, *peer.console));
    }
    for (auto& limit : limits_) {
      contenders.push_back(
          {limit.first, [this, &limit] { return limit.second.run(flags_.seconds); }});
    }
    report(Interleaved(std::move(contenders), flags_.rounds), peers);
    result_.write(flags_.json);
    return 0;
  }

 private:
  Contender contender(std::string name, Load& load, RedisConsole& console) const {
    return {std::move(name),
            [this, &load, &console] { return measure(load, console, flags_.seconds); }};
  }

  void make_limits(RedisConsole& console) {
    const Population population{.users = flags_.users};
    const auto campaigns = campaign_ids(population.campaigns);
    record_bytes_ = compacted_record(impressions_of(population, campaigns, 0)).size();
    limits_.emplace("limit_get",
                    RedisBenchmark(console, {"GET", key_pattern()}, kInFlight, flags_.users));
    const auto keys = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(keys_)));
    std::vector<std::string> mget = {"MGET"};
    mget.insert(mget.end(), keys, key_pattern());
    limits_.emplace(
        "limit_mget",
        RedisBenchmark(console, mget, std::max<std::size_t>(1, kInFlight / keys), flags_.users));
    written_ = std::make_unique<RedisConsole>(flags_.redis, kWrittenDatabase);
    limits_.emplace(
        "limit_set",
        RedisBenchmark(*written_, {"SET", key_pattern(), std::string(record_bytes_, 'x')},
                       kInFlight, flags_.users));
    mget_keys_ = keys;
  }

  void report(const Interleaved& measured, const std::vector<Entrant>& peers) {
    result_.table("check_layouts", "Checks per second, by layout",
                  "10 candidates per request, 64 in flight but where it says 256, " +
                      std::to_string(flags_.users) + " users; medians of " +
                      std::to_string(flags_.rounds) +
                      " turns. A request of the ledger evaluates two rules per candidate, one of a "
                      "peer one.",
                  throughput_columns());
    const auto row = [&](const std::string& name, const std::string& title) {
      result_.row("check_layouts", name, title, throughput_numbers(measured.median(name)));
    };
    row("ledger_mget", "ledger, GETs coalesced into MGET");
    row("ledger_get", "ledger, plain GET");
    row("ledger_256", "ledger, 256 in flight");
    row("zset_256", "ZSET per user+campaign, 256 in flight");
    for (const Entrant& peer : peers) {
      row(std::string(peer.layout->name()), std::string(peer.layout->title()));
      result_.number("check_vs_" + std::string(peer.layout->name()),
                     measured.ratio("ledger_mget", std::string(peer.layout->name())));
    }
    report_limits(measured);
    result_.number("check_vs_zcount", measured.ratio("ledger_mget", "zset"));
    result_.number("check_plain_vs_zcount", measured.ratio("ledger_get", "zset"));
    result_.number("check_vs_zcount_256_in_flight", measured.ratio("ledger_256", "zset_256"));
    result_.number("check_vs_get", measured.ratio("ledger_mget", "limit_get"));
    result_.number("check_plain_get_vs_get", measured.ratio("ledger_get", "limit_get"));
    result_.number("check_vs_mget",
                   measured.ratio("ledger_mget", "limit_mget") / static_cast<double>(mget_keys_));
    result_.number("mget_keys_coalesced", keys_);
    result_.number("record_bytes", static_cast<double>(record_bytes_));
  }

  void report_limits(const Interleaved& measured) {
    result_.table("check_limits", "Limits: redis-benchmark, one connection",
                  "Values of " + std::to_string(record_bytes_) +
                      " bytes, 64 keys in flight. MGET of " + std::to_string(mget_keys_) +
                      " keys: as many as the Checker coalesced; its row is in keys.",
                  throughput_columns());
    const auto row = [&](const std::string& name, const std::string& title, std::size_t keys) {
      Measurement limit = measured.median(name);
      limit.requests_per_second *= static_cast<double>(keys);
      limit.client_cpu_us /= static_cast<double>(keys);
      limit.redis_cpu_us /= static_cast<double>(keys);
      result_.row("check_limits", name, title, throughput_numbers(limit));
    };
    row("limit_get", "GET -P 64", 1);
    row("limit_mget", "MGET, keys", mget_keys_);
    row("limit_set", "SET -P 64", 1);
  }

  const PartFlags& flags_;
  PartResult result_{"check"};
  std::unique_ptr<RedisConsole> written_;
  std::map<std::string, RedisBenchmark> limits_;
  double keys_ = 1;
  std::size_t mget_keys_ = 1;
  std::size_t record_bytes_ = 0;
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  fcap::bench::PartFlags flags;
  bool verify_only = false;
  CLI::App app("Checks per second, beside the peers and the limits.", "bench_check");
  app.add_flag("--verify", verify_only, "Only the peers' cases of correctness");
  return fcap::bench::run_part(app, argc, argv, flags,
                               [&] { return fcap::bench::CheckPart(flags).run(verify_only); });
}
