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
#include <list>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>

#include "harness/part.h"
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
constexpr const char* kRate = "requests_per_second";

std::string name_of(WindowKind window) {
  switch (window) {
    case WindowKind::kSliding:
      return "sliding";
    case WindowKind::kCalendar:
      return "calendar";
    case WindowKind::kFixed:
      return "fixed";
  }
  return {};
}

// Throws if a layout counts wrongly: then nothing is measured.
void verify(PartResult& result, const PartRedis& redis) {
  RedisConsole console(redis, kVerifyDatabase);
  result.table("correctness", "Cases of correctness",
               "Each layout on the cases that its semantics allow, before anything is measured.",
               {{"passed", "passed"}, {"failed", "failed"}, {"skipped", "not applicable"}});
  std::vector<std::unique_ptr<Layout>> layouts = make_peers();
  for (const auto window : {WindowKind::kSliding, WindowKind::kCalendar, WindowKind::kFixed}) {
    layouts.push_back(make_ledger_layout(window));
  }
  for (const auto& layout : layouts) {
    const Numbers cases = check_correctness(*layout, console);
    const auto& [name, title, kind, counts_once, takes_late, scripts] = layout->traits();
    const std::string window = name_of(kind);
    result.row("correctness", name == "ledger" ? fmt::format("{}_{}", name, window) : name,
               fmt::format("{} ({} window)", title, window), cases);
    if (cases.at("failed") > 0 || cases.at("passed") == 0) {
      throw std::runtime_error(name + " counts wrongly: nothing is measured");
    }
  }
}

// A layout in a database of its own, so that each has the server's tables to itself.
struct Peer {
  std::unique_ptr<Layout> layout;
  RedisConsole console;
  std::list<LayoutRequests> loads;
};

// How many keys an MGET of the coalescing Checker has, on average.
double coalesced_keys(Load& load, RedisConsole& console, double seconds) {
  console.call({"CONFIG", "RESETSTAT"});
  (void)load.measure(console.redis().pid(), seconds);
  const std::string calls = console.info("commandstats", "cmdstat_mget");
  if (calls.empty()) return 1;
  return console.number("stats", "keyspace_hits") / std::stod(calls.substr(calls.find('=') + 1));
}

std::string key_pattern() {
  const std::string id = user_id(0);
  std::string key;
  ledger::user_key("fcap", id.substr(0, id.size() - 12) + "__rand_int__", key);
  return key;
}

class CheckPart {
 public:
  CheckPart(const PartFlags& flags, PartResult& result) : flags_(flags), result_(result) {}

  void run(bool verify_only) {
    verify(result_, redis_);
    if (verify_only) return;
    add_checkers();
    add_peers();
    add_limits();
    for (std::size_t round = 0; round < flags_.rounds; ++round) {
      for (auto& [name, load] : loads_) {
        measured_.keep(name, load->measure(redis_.pid(), flags_.seconds));
      }
      for (auto& [name, limit] : limits_) measured_.keep(name, limit.run(flags_.seconds));
    }
    report();
  }

 private:
  void add_checkers() {
    populate_compacted(console_, {.users = flags_.users});
    const auto add = [&](const char* name, const char* title, std::size_t in_flight,
                         std::size_t mget_keys_max) {
      loads_[name] = &checks_.emplace_back(console_, workload_, in_flight, mget_keys_max);
      titles_.emplace_back(name, title);
    };
    add("ledger_mget", "ledger, GETs coalesced into MGET", kInFlight, usual_mget_keys_max());
    add("ledger_get", "ledger, plain GET", kInFlight, 1);
    add("ledger_256", "ledger, 256 in flight", kManyInFlight, usual_mget_keys_max());
    keys_ = coalesced_keys(checks_.front(), console_, flags_.seconds / 2);
  }

  void add_peers() {
    for (auto& layout : make_peers()) {
      const int database = static_cast<int>(peers_.size()) + 1;
      Peer& peer = peers_.emplace_back(Peer{std::move(layout), RedisConsole(redis_, database), {}});
      populate(peer.console, *peer.layout, {.users = flags_.users});
      add_load(peer, peer.layout->traits().name, peer.layout->traits().title, kInFlight);
    }
    add_load(peers_.front(), "zset_256", "ZSET per user+campaign, 256 in flight", kManyInFlight);
  }

  void add_load(Peer& peer, const std::string& name, const std::string& title,
                std::size_t in_flight) {
    loads_[name] = &peer.loads.emplace_back(peer.console, *peer.layout, workload_, in_flight);
    titles_.emplace_back(name, title);
  }

  void add_limits() {
    const Population population{.users = flags_.users};
    const auto campaigns = campaign_ids(population.campaigns);
    record_bytes_ = compacted_record(impressions_of(population, campaigns, 0)).size();
    mget_keys_ = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(keys_)));
    std::vector<std::string> mget(1 + mget_keys_, key_pattern());
    mget.front() = "MGET";
    const auto add = [&](const char* name, const RedisConsole& console,
                         const std::vector<std::string>& command, std::size_t pipeline) {
      limits_.emplace(name, RedisBenchmark(console, command, pipeline, flags_.users));
    };
    add("limit_get", console_, {"GET", key_pattern()}, kInFlight);
    add("limit_mget", console_, mget, std::max<std::size_t>(1, kInFlight / mget_keys_));
    add("limit_set", RedisConsole(redis_, kWrittenDatabase),
        {"SET", key_pattern(), std::string(record_bytes_, 'x')}, kInFlight);
  }

  void report() {
    result_.table("check_layouts", "Checks per second, by layout",
                  "10 candidates per request, 64 in flight but where it says 256, " +
                      std::to_string(flags_.users) + " users; medians of " +
                      std::to_string(flags_.rounds) +
                      " turns. A request of the ledger evaluates two rules per candidate, one of a "
                      "peer one.",
                  throughput_columns());
    for (const auto& [name, title] : titles_) row("check_layouts", name, title, 1);
    result_.table("check_limits", "Limits: redis-benchmark, one connection",
                  "Values of " + std::to_string(record_bytes_) +
                      " bytes, 64 keys in flight. MGET of " + std::to_string(mget_keys_) +
                      " keys: as many as the Checker coalesced; its row is in keys.",
                  throughput_columns());
    const auto keys = static_cast<double>(mget_keys_);
    row("check_limits", "limit_get", "GET -P 64", 1);
    row("check_limits", "limit_mget", "MGET, keys", keys);
    row("check_limits", "limit_set", "SET -P 64", 1);

    const auto ratio = [this](const std::string& name, const std::string& to) {
      return measured_.ratio(name, to, kRate);
    };
    for (const Peer& peer : peers_) {
      const std::string& name = peer.layout->traits().name;
      result_.number("check_vs_" + name, ratio("ledger_mget", name));
    }
    result_.number("check_vs_zcount", ratio("ledger_mget", "zset"));
    result_.number("check_plain_vs_zcount", ratio("ledger_get", "zset"));
    result_.number("check_vs_zcount_256_in_flight", ratio("ledger_256", "zset_256"));
    result_.number("check_vs_get", ratio("ledger_mget", "limit_get"));
    result_.number("check_plain_get_vs_get", ratio("ledger_get", "limit_get"));
    result_.number("check_vs_mget", ratio("ledger_mget", "limit_mget") / keys);
    result_.number("mget_keys_coalesced", keys_);
    result_.number("record_bytes", static_cast<double>(record_bytes_));
  }

  // `keys`: how many a request of what was measured has.
  void row(const char* table, const std::string& name, const std::string& title, double keys) {
    Numbers numbers = measured_.medians(name);
    for (auto& [key, number] : numbers) number = key == kRate ? number * keys : number / keys;
    numbers["failed"] = measured_.sum(name, "failed");
    result_.row(table, name, title, numbers);
  }

  const PartFlags& flags_;
  PartResult& result_;
  const CheckWorkload workload_ = usual_workload(flags_.users);
  PartRedis redis_;
  RedisConsole console_{redis_};
  std::list<Peer> peers_;
  std::list<AsyncChecks> checks_;
  std::map<std::string, Load*> loads_;
  std::map<std::string, RedisBenchmark> limits_;
  std::vector<std::pair<std::string, std::string>> titles_;
  Measured measured_;
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
  return run_part(app, argc, argv, flags, [&](fcap::bench::PartResult& result) {
    fcap::bench::CheckPart(flags, result).run(verify_only);
  });
}
