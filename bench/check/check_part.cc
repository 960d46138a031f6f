// The part `check`: checks per second over one client core and one Redis core, beside the peers and
// the limits, all of them in turns. 64 requests in flight.
//
//   ledger        libfcap's Checker, completion form: GETs coalesced into MGETs, and not
//   peers         bench/peers, each over the same transport as the Checker; first of all, their
//                 cases of correctness
//   limits        redis-benchmark, one connection, same values: GET; MGET of as many keys as were
//                 coalesced; SET
//   TLS           the ledger over TLS 1.3 and over plain TCP, on a server that listens for both
#include <list>
#include <optional>

#include <sys/resource.h>

#include "check/correctness.h"
#include "harness/part.h"
#include "path/check_load.h"
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
  return key_of(id.substr(0, id.size() - 12) + "__rand_int__");
}

// A layout's requests: a number of them always in flight over one connection.
class LayoutRequests final : public Load {
 public:
  LayoutRequests(RedisConsole& console, Layout& layout, const CheckWorkload& workload,
                 std::size_t in_flight)
      : console_(console), layout_(layout), workload_(workload) {
    while (requests_.size() < in_flight) requests_.push_back(std::make_unique<OneRequest>(*this));
  }

 private:
  class OneRequest final : public redis::Request {
   public:
    explicit OneRequest(LayoutRequests& load) : load_(load) {}

    void prepare() {
      question_ = {load_.workload_.user(load_.turn_++), load_.workload_.campaigns, kBenchNow};
      wire.clear();
      command_count = 0;
      load_.layout_.ask(*this, question_);
      counts_.assign(question_.campaigns.size(), 0);
      readable_ = true;
    }
    void submit() {
      deadline = Clock::now() + kDeadline;
      load_.console_.client().submit(*this);
    }
    void on_reply(std::uint32_t index, const redis::Reply& reply) noexcept override {
      readable_ = load_.layout_.read(question_, index, reply, counts_) && readable_;
    }
    void on_done(redis::TransportCode code) noexcept override {
      if (!load_.goes_on(code == redis::TransportCode::kOk && readable_)) return;
      prepare();
      submit();
    }

   private:
    LayoutRequests& load_;
    PeerQuestion question_;
    std::vector<std::uint32_t> counts_;
    bool readable_ = true;
  };

  void start() override {
    running_ = requests_.size();
    for (auto& request : requests_) request->prepare();
    for (auto& request : requests_) request->submit();
  }

  RedisConsole& console_;
  Layout& layout_;  // the I/O thread's, once answers come, like turn_
  const CheckWorkload& workload_;
  std::size_t turn_ = 0;
  std::vector<std::unique_ptr<OneRequest>> requests_;
};

// redis-benchmark with one connection: what Redis does when its client does nothing else. Its CPU
// time is that of the child process.
class RedisBenchmark {
 public:
  // `command`: its words; "__rand_int__" becomes a random number below `random_below`, 12 digits.
  // `keys`: how many it names, of which 64 are in flight; what is measured is per key.
  RedisBenchmark(const std::string& url, const std::vector<std::string>& command,
                 std::size_t random_below, std::size_t keys)
      : keys_(static_cast<double>(keys)), command_(command) {
    constexpr std::size_t kKeysInFlight = 64;
    const std::size_t commands_in_flight = std::max<std::size_t>(1, kKeysInFlight / keys);
    line_ = {"redis-benchmark",
             "--csv",
             "-u",
             url,
             "-c",
             "1",
             "-P",
             std::to_string(commands_in_flight),
             "-r",
             std::to_string(random_below),
             "-n"};
  }

  // About that long, judged by the last run; the first one is preceded by a short trial.
  Numbers measure(int redis_pid, double seconds) {
    constexpr std::size_t kTrialRequests = 5'000;
    if (expected_per_second_ == 0) (void)run(redis_pid, kTrialRequests);
    return run(redis_pid, static_cast<std::size_t>(expected_per_second_ * seconds) + 1);
  }

 private:
  Numbers run(int redis_pid, std::size_t requests) {
    std::vector<std::string> line = line_;
    line.push_back(std::to_string(requests));
    line.insert(line.end(), command_.begin(), command_.end());
    const double count = keys_ * static_cast<double>(requests);
    const Meter meter({{"redis_cpu_us", redis_pid}});
    const double client_before = children_cpu_us();
    expected_per_second_ = requests_per_second_of(testing::run(line));
    Numbers found = meter.per("requests", count);
    // Its own count, without its start and its end.
    found["requests_per_second"] = keys_ * expected_per_second_;
    found["client_cpu_us"] = (children_cpu_us() - client_before) / count;
    found["failed"] = 0;
    return found;
  }

  static double children_cpu_us() {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return 1e6 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  }

  // The last line is "command","requests/s",…; the command may hold commas.
  static double requests_per_second_of(const testing::Finished& finished) {
    const std::string& csv = finished.output;
    const std::size_t line = csv.rfind("\n\"");
    const std::size_t comma = csv.find("\",\"", line == std::string::npos ? 0 : line);
    if (comma == std::string::npos) {
      throw std::runtime_error("redis-benchmark said: " + csv + finished.errors);
    }
    return std::stod(csv.substr(comma + 3));
  }

  const double keys_;
  const std::vector<std::string> command_;
  std::vector<std::string> line_;  // up to the number of requests
  double expected_per_second_ = 0;
};

class CheckPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    verify();
    add_checkers();
    add_peers();
    add_limits();
    add_tls();
    take_turns();
    report_ratios();
  }

 private:
  // Throws if a layout counts wrongly: then nothing is measured.
  void verify() {
    RedisConsole console(redis_->address(), kVerifyDatabase);
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
      result_.row(traits.name == "ledger" ? "ledger_" + window : traits.name,
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
    const RedisOptions& redis = console_.options();
    compare<AsyncChecks>("ledger_mget", "ledger, GETs coalesced into MGET", redis, workload_,
                         kInFlight);
    compare<AsyncChecks>("ledger_get", "ledger, plain GET", coalescing(redis, 1), workload_,
                         kInFlight);
    compare<AsyncChecks>("ledger_256", "ledger, 256 in flight", redis, workload_, kManyInFlight);

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
          consoles_.emplace_back(redis_->address(), static_cast<int>(consoles_.size()) + 1);
      populate(console, *peer, {.users = flags_.users});
      compare<LayoutRequests>(peer->traits().name, peer->traits().title, console, *peer, workload_,
                              kInFlight);
    }
    compare<LayoutRequests>("zset_256", "ZSET per user+campaign, 256 in flight", consoles_.front(),
                            *peers_.front(), workload_, kManyInFlight);
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
    const auto limit = [this](const char* name, const char* title,
                              const std::vector<std::string>& command, std::size_t keys = 1,
                              int database = 0) {
      const auto url = fmt::format("redis://{}/{}", redis_->address(), database);
      compare<RedisBenchmark>(name, title, url, command, flags_.users, keys);
    };
    limit("limit_get", "GET -P 64", {"GET", key_pattern()});
    limit("limit_mget", "MGET, keys", mget, mget_keys_);
    limit("limit_set", "SET -P 64", {"SET", key_pattern(), std::string(value.size(), 'x')}, 1,
          kWrittenDatabase);
  }

  void add_tls() try {
    result_.table("check_tls", "Checks per second, over TLS",
                  "64 in flight; one server that listens for both, in turns.",
                  throughput_columns());
    authority_.emplace("fcap bench");
    tls_redis_.emplace(authority_->ca_file(), authority_->issue("redis", "IP:127.0.0.1"));
    RedisConsole console(tls_redis_->server().address());
    pin(tls_redis_->server().pid(), kRedisCore);
    populate_compacted(console, {.users = flags_.users});
    RedisOptions tls = console.options();
    tls.addresses = {tls_redis_->address()};
    tls.tls = {.enabled = true, .ca_file = authority_->ca_file()};
    const auto add = [&](const char* name, const char* title, const RedisOptions& redis) {
      const auto checks = std::make_shared<AsyncChecks>(redis, workload_, kInFlight);
      compare(name, title, [this, checks] {
        return checks->measure(tls_redis_->server().pid(), flags_.seconds);
      });
    };
    add("tls", "TLS", tls);
    add("plain", "plain TCP", console.options());
  } catch (const std::runtime_error& error) {
    result_.missing("check_tls_vs_plain", error.what());
  }

  void report_ratios() {
    const auto rates = [this](const std::string& key, const char* name, const std::string& to) {
      ratio(key, name, to, "requests_per_second");
    };
    for (const auto& peer : peers_) {
      rates("check_vs_" + peer->traits().name, "ledger_mget", peer->traits().name);
    }
    rates("check_vs_zcount", "ledger_mget", "zset");
    rates("check_plain_vs_zcount", "ledger_get", "zset");
    rates("check_vs_zcount_256_in_flight", "ledger_256", "zset_256");
    rates("check_vs_get", "ledger_mget", "limit_get");
    rates("check_plain_get_vs_get", "ledger_get", "limit_get");
    rates("check_vs_mget", "ledger_mget", "limit_mget");
    rates("check_tls_vs_plain", "tls", "plain");
  }

  const CheckWorkload workload_ = usual_workload(flags_.users);
  const std::vector<std::unique_ptr<Layout>> peers_ = make_peers();
  std::list<RedisConsole> consoles_;  // of the peers
  std::optional<testing::Certificates> authority_;
  std::optional<testing::TlsRedis> tls_redis_;
  std::size_t mget_keys_ = 1;
};

const Registered kCheck("check", run_part<CheckPart>);

}  // namespace
}  // namespace fcap::bench
