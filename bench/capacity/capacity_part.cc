// The part `capacity`: a large population over the three masters of a Redis Cluster, without
// replicas. Nothing is pinned to a core: there are more servers than cores.
#include <csignal>

#include "harness/part.h"
#include "path/bench_cluster.h"
#include "path/open_loop.h"
#include "updater/measuring.h"

namespace fcap::bench {
namespace {

constexpr double kChecksPerSecond[] = {10'000, 50'000};
constexpr std::chrono::minutes kPopulatedWithin{10};

class CapacityPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    for (const int pid : {getpid(), redis_->pid(), servers_.kafka->pid()}) pin(pid, kAnyCore);
    (void)fill_topic(servers_, kFilledTopic, flags_.events);
    compare_updaters();
    measure_memory();
    measure_checks();
    measure_updater();
    measure_restart();
  }

 private:
  void measure_memory() {
    const double empty = cluster_->sum("memory", "used_memory");
    const auto began = Clock::now();
    cluster_->load(flags_.users);
    const double took = seconds_since(began);
    const double used = cluster_->sum("memory", "used_memory") - empty;
    const auto pairs = static_cast<double>(flags_.users * Population{}.campaigns);
    result_.number("capacity_bytes_per_pair", used / pairs);
    result_.table("capacity_population",
                  "Capacity: a large population over three masters of a cluster",
                  fmt::format("{} users of {} campaigns, compacted; no replicas.", flags_.users,
                              Population{}.campaigns),
                  {{"gb", "GB", 2},
                   {"resident_gb", "resident, GB", 2},
                   {"bytes_per_pair", "bytes per (user, campaign)", 1},
                   {"s", "s", 1}});
    result_.row("load", "loading", {{"s", took}});
    result_.row("memory", "memory of all masters",
                {{"gb", used / 1e9},
                 {"resident_gb", cluster_->sum("memory", "used_memory_rss") / 1e9},
                 {"bytes_per_pair", used / pairs}});
  }

  void measure_checks() {
    const CheckWorkload workload = usual_workload(flags_.users);
    const auto checker = make_checker(cluster_->options(), workload);
    result_.table("capacity_checks", "Checks over that population",
                  "Open loop, from the intended start; users at random.",
                  {kAnswered, kP50, kP99, kP999, kFailed});
    for (const double rate : kChecksPerSecond) {
      const Numbers run = OpenLoop(*checker, workload, rate).run(flags_.seconds);
      result_.row(fmt::format("{:.0f}", rate), fmt::format("{:.0f}/s", rate), run);
      if (rate == kChecksPerSecond[0]) result_.number("capacity_check_p99_us", run.at("p99_us"));
    }
  }

  // Into one server and into three, all of them empty.
  void compare_updaters() {
    updater_table("capacity_updater_empty", "The updater into one server, and into a cluster",
                  "All of them empty");
    compare("one", "into one server", [this] {
      console_.call({"FLUSHALL", "SYNC"});
      return drain(redis_->address());
    });
    compare("three", "into three masters", [this] {
      for (int shard = 0; shard < BenchCluster::kShards; ++shard) {
        cluster_->servers().command(shard, {"FLUSHALL", "SYNC"});
      }
      return drain(cluster_->servers().url());
    });
    take_turns();
    ratio("capacity_updater_three_shards_vs_one", "three", "one", "events_per_second");
  }

  void measure_updater() {
    updater_table("capacity_updater", "The updater over that population", "Once");
    result_.row("three", "into the three masters", drain(cluster_->servers().url()));
  }

  void updater_table(const char* id, const char* title, const char* how) {
    result_.table(id, title,
                  fmt::format("{}; {} events in a topic that lies ready. CPU is that of one event.",
                              how, flags_.events),
                  {{"events_per_second", "events/s", 0},
                   {"client_cpu_us", "client CPU µs", 2},
                   {"redis_cpu_us", "all Redis, CPU µs", 2},
                   {"broker_cpu_us", "broker CPU µs", 2},
                   {"cores", "cores busy", 2}});
  }

  // How many cores are busy says whether there were more to be had.
  Numbers drain(const std::string& address) {
    const double before = redis_cpu_seconds();
    RunningUpdater updater(servers_, kFilledTopic, address);
    Numbers found = updater.drain(flags_.events);
    found["redis_cpu_us"] =
        1e6 * (redis_cpu_seconds() - before) / static_cast<double>(flags_.events);
    updater.end(SIGTERM);
    const double all =
        found.at("client_cpu_us") + found.at("redis_cpu_us") + found.at("broker_cpu_us");
    found["cores"] = found.at("events_per_second") * all / 1e6;
    return found;
  }

  // The sum of all servers; those that have nothing to do hardly take any.
  double redis_cpu_seconds() {
    double all = 0;
    for (const std::string field : {"used_cpu_user", "used_cpu_sys"}) {
      all += console_.number("cpu", field) + cluster_->sum("cpu", field);
    }
    return all;
  }

  // As after a crash or an upgrade, with the data of its last snapshot.
  void measure_restart() {
    testing::RedisCluster& servers = cluster_->servers();
    const std::string records = servers.command(0, {"DBSIZE"});
    servers.command(0, {"BGSAVE"});
    const auto saved = [&] {
      return servers.command(0, {"INFO", "persistence"}).find("rdb_bgsave_in_progress:0") !=
             std::string::npos;
    };
    if (!testing::wait_until(saved, kPopulatedWithin)) throw std::runtime_error("no snapshot");
    servers.kill(0);
    const auto began = Clock::now();
    servers.start(0);  // finds the snapshot
    const auto loaded = [&] { return servers.command(0, {"DBSIZE"}) == records; };
    if (!testing::wait_until(loaded, kPopulatedWithin))
      throw std::runtime_error("the master is not back");
    const double took = seconds_since(began);
    result_.number("capacity_restart_s", took);
    result_.row("capacity_population", "restart",
                fmt::format("one master starts again, with {} records of its snapshot", records),
                {{"s", took}});
  }

  Servers servers_{*redis_};
  const std::unique_ptr<BenchCluster> cluster_ = start_on<BenchCluster>(kAnyCore);
};

const Registered kCapacity("capacity", run_part<CapacityPart>);

}  // namespace
}  // namespace fcap::bench
