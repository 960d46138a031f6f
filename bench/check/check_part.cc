// bench_check: checks per second over one client core and one Redis core, beside the peers and the
// limits, all of them in turns. 10 candidates per request, 64 requests in flight, 100,000 users of
// 10 campaigns x 3 impressions. The ledger answers two rules per candidate; each peer answers one,
// which is what its layout is for.
//
//   ledger        libfcap's Checker, completion form: GETs coalesced into MGETs, and not
//   peers         bench/peers, each over the same transport as the Checker; first of all, their
//                 cases of correctness
//   limits        redis-benchmark, one connection, same values: GET; MGET of as many keys as were
//                 coalesced; SET
//   TLS           the ledger over TLS 1.3 and over plain TCP, on a server that listens for both
#include <list>
#include <optional>

#include "check/correctness.h"
#include "check/loads.h"
#include "harness/part.h"
#include "ledger/user_key.h"
#include "support/tls_redis.h"

namespace fcap::bench {
namespace {

constexpr std::size_t kInFlight = 64;
constexpr std::size_t kManyInFlight = 256;
constexpr int kVerifyDatabase = 15;
constexpr int kWrittenDatabase = 14;

// A user's key, at random, as redis-benchmark writes that.
std::string key_pattern() {
  const std::string id = user_id(0);
  std::string key;
  ledger::user_key("fcap", id.substr(0, id.size() - 12) + "__rand_int__", key);
  return key;
}

class CheckPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    verify();
    add_checkers();
    add_peers();
    add_limits();
    add_tls();
    report_ratios(take_turns(turns_));
  }

 private:
  template <typename Made, typename... From>
  void add(const char* table, const std::string& name, const std::string& title, From&&... from) {
    turns_.push_back(
        {table, name, title, measuring(std::make_shared<Made>(std::forward<From>(from)...))});
  }

  // Throws if a layout counts wrongly: then nothing is measured.
  void verify() {
    RedisConsole console(redis_.address(), kVerifyDatabase);
    result_.table("correctness", "Cases of correctness",
                  "Each layout on the cases that its semantics allow, before anything is measured.",
                  {{"passed", "passed"}, {"failed", "failed"}, {"skipped", "not applicable"}});
    std::vector<std::unique_ptr<Layout>> layouts = make_peers();
    for (const auto window : {WindowKind::kSliding, WindowKind::kCalendar, WindowKind::kFixed}) {
      layouts.push_back(make_ledger_layout(window));
    }
    for (const auto& layout : layouts) {
      constexpr const char* kWindowNames[] = {"sliding", "calendar", "fixed"};
      const Numbers cases = check_correctness(*layout, console);
      const LayoutTraits& traits = layout->traits();
      const std::string window = kWindowNames[static_cast<int>(traits.window)];
      result_.row("correctness", traits.name == "ledger" ? "ledger_" + window : traits.name,
                  fmt::format("{} ({} window)", traits.title, window), cases);
      if (cases.at("failed") > 0 || cases.at("passed") == 0) {
        throw std::runtime_error(traits.name + " counts wrongly: nothing is measured");
      }
    }
  }

  void add_checkers() {
    result_.table(
        "check_layouts", "Checks per second, by layout",
        fmt::format("10 candidates per request, 64 in flight but where it says 256, {} users; "
                    "medians of {} turns. A request of the ledger evaluates two rules per "
                    "candidate, one of a peer one.",
                    flags_.users, flags_.rounds),
        throughput_columns());
    populate_compacted(console_, {.users = flags_.users});
    const auto checks = [&](const char* name, const char* title, std::size_t in_flight,
                            std::size_t mget_keys_max) {
      add<AsyncChecks>("check_layouts", name, title, console_.options(), workload_, in_flight,
                       mget_keys_max);
    };
    checks("ledger_mget", "ledger, GETs coalesced into MGET", kInFlight, usual_mget_keys_max());
    checks("ledger_get", "ledger, plain GET", kInFlight, 1);
    checks("ledger_256", "ledger, 256 in flight", kManyInFlight, usual_mget_keys_max());

    // How many keys an MGET of the coalescing Checker has, on average.
    console_.call({"CONFIG", "RESETSTAT"});
    (void)turns_.front().measure();
    const std::string calls = console_.info("commandstats", "cmdstat_mget");
    const double keys = calls.empty() ? 1
                                      : console_.number("stats", "keyspace_hits") /
                                            std::stod(calls.substr(calls.find('=') + 1));
    result_.number("mget_keys_coalesced", keys);
    mget_keys_ = std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(keys)));
  }

  // Each layout in a database of its own, so that it has the server's tables to itself.
  void add_peers() {
    for (const auto& peer : peers_) {
      RedisConsole& console =
          consoles_.emplace_back(redis_.address(), static_cast<int>(consoles_.size()) + 1);
      populate(console, *peer, {.users = flags_.users});
      add<LayoutRequests>("check_layouts", peer->traits().name, peer->traits().title, console,
                          *peer, workload_, kInFlight);
    }
    add<LayoutRequests>("check_layouts", "zset_256", "ZSET per user+campaign, 256 in flight",
                        consoles_.front(), *peers_.front(), workload_, kManyInFlight);
  }

  void add_limits() {
    const std::string value = usual_record();
    result_.number("record_bytes", static_cast<double>(value.size()));
    result_.table("check_limits", "Limits: redis-benchmark, one connection",
                  fmt::format("Values of {} bytes, 64 keys in flight. MGET of {} keys: as many as "
                              "the Checker coalesced; its row is in keys.",
                              value.size(), mget_keys_),
                  throughput_columns());
    std::vector<std::string> mget(1 + mget_keys_, key_pattern());
    mget.front() = "MGET";
    RedisOptions written = console_.options();
    written.database = kWrittenDatabase;
    const auto limit = [this](const char* name, const char* title, const auto&... from) {
      add<RedisBenchmark>("check_limits", name, title, from...);
    };
    limit("limit_get", "GET -P 64", console_.options(),
          std::vector<std::string>{"GET", key_pattern()}, flags_.users);
    limit("limit_mget", "MGET, keys", console_.options(), mget, flags_.users, mget_keys_);
    limit("limit_set", "SET -P 64", written,
          std::vector<std::string>{"SET", key_pattern(), std::string(value.size(), 'x')},
          flags_.users);
  }

  void add_tls() try {
    result_.table("check_tls", "Checks per second, over TLS",
                  "64 in flight; one server that listens for both, in turns.",
                  throughput_columns());
    authority_.emplace("fcap bench");
    tls_redis_.emplace(authority_->ca_file(), authority_->issue("redis", "IP:127.0.0.1"));
    RedisConsole console(tls_redis_->server().address());
    pin(console.pid(), kRedisCore);
    populate_compacted(console, {.users = flags_.users});
    RedisOptions tls = console.options();
    tls.addresses = {tls_redis_->address()};
    tls.tls = {.enabled = true, .ca_file = authority_->ca_file()};
    const auto checks = [&](const RedisOptions& redis) {
      return measuring(std::make_shared<AsyncChecks>(redis, workload_, kInFlight), console.pid());
    };
    turns_.push_back({"check_tls", "tls", "TLS", checks(tls)});
    turns_.push_back({"check_tls", "plain", "plain TCP", checks(console.options())});
  } catch (const std::runtime_error& error) {
    result_.missing("check_tls_vs_plain", error.what());
  }

  void report_ratios(const Measured& measured) {
    const auto ratio = [&](const std::string& key, const char* name, const std::string& to) {
      if (measured.has(to)) {
        result_.number(key, measured.ratio(name, to, "requests_per_second"));
      }
    };
    for (const auto& peer : peers_) {
      ratio("check_vs_" + peer->traits().name, "ledger_mget", peer->traits().name);
    }
    ratio("check_vs_zcount", "ledger_mget", "zset");
    ratio("check_plain_vs_zcount", "ledger_get", "zset");
    ratio("check_vs_zcount_256_in_flight", "ledger_256", "zset_256");
    ratio("check_vs_get", "ledger_mget", "limit_get");
    ratio("check_plain_get_vs_get", "ledger_get", "limit_get");
    ratio("check_vs_mget", "ledger_mget", "limit_mget");
    ratio("check_tls_vs_plain", "tls", "plain");
  }

  const CheckWorkload workload_ = usual_workload(flags_.users);
  const std::vector<std::unique_ptr<Layout>> peers_ = make_peers();
  std::list<RedisConsole> consoles_;  // of the peers
  std::optional<testing::Certificates> authority_;
  std::optional<testing::TlsRedis> tls_redis_;
  std::size_t mget_keys_ = 1;
  std::vector<Turn> turns_;
};

}  // namespace
}  // namespace fcap::bench

int main(int argc, char** argv) {
  return fcap::bench::run_part<fcap::bench::CheckPart>(argc, argv);
}
