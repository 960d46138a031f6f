// The part `cluster`: checks over the three masters of a Redis Cluster, beside one server that gets
// the same plain GETs, all of them on Redis' core; and what users of the other shards notice while
// one shard is frozen and its own users are asked about all the while.
#include "harness/part.h"
#include "path/bench_cluster.h"
#include "path/open_loop.h"

namespace fcap::bench {
namespace {

constexpr double kOthersPerSecond = 20'000;
constexpr std::chrono::microseconds kBetweenItsOwn{500};
// Nobody may find out that it is frozen and end it.
constexpr std::chrono::minutes kNodeTimeout{10};

class ClusterPart final : public RedisPart {
 public:
  using RedisPart::RedisPart;

  void run() {
    populate_compacted(console_, {.users = flags_.users});
    cluster_->load(flags_.users);
    compare_with_one_server();
    freeze_a_shard();
  }

 private:
  void compare_with_one_server() {
    result_.table(
        "cluster", "Checks per second over a Redis Cluster",
        fmt::format("Plain GETs, {} users; one server and three masters on the same "
                    "core. Medians of {} turns.",
                    flags_.users, flags_.rounds),
        {{"requests_per_second", "requests/s", 0}, {"client_cpu_us", "client CPU µs/request", 2}});
    for (const std::size_t in_flight : {64U, 256U}) {
      const auto add = [&](const char* name, const char* title, const RedisOptions& redis) {
        compare<AsyncChecks>(fmt::format("{}_{}", name, in_flight),
                             fmt::format("{}, {} in flight", title, in_flight),
                             coalescing(redis, 1), workload_, in_flight);
      };
      add("one", "one server", console_.options());
      add("cluster", "three masters", cluster_->options());
    }
    take_turns();
    ratio("cluster_vs_one_server_64", "cluster_64", "one_64", "requests_per_second");
    ratio("cluster_vs_one_server_256", "cluster_256", "one_256", "requests_per_second");
  }

  void freeze_a_shard() {
    result_.table("cluster_frozen", "Users of the other shards, while one is frozen",
                  fmt::format("Open loop, {:.0f} checks per second of users of two shards, beside "
                              "2,000 of the third one's. Medians of {} turns.",
                              kOthersPerSecond, flags_.rounds),
                  {kP50, kP99, kP999, kFailed});
    CheckWorkload its_own = workload_;
    CheckWorkload others = workload_;
    const auto is_frozen = [](const auto& user) { return BenchCluster::shard_of(user) == 0; };
    std::erase_if(its_own.users, std::not_fn(is_frozen));
    std::erase_if(others.users, is_frozen);
    cluster_->servers().set_node_timeout(kNodeTimeout);
    const auto checker = make_checker(cluster_->options(), others);
    const auto others_wait = [&] {
      const std::jthread asking([&](const std::stop_token& stop) {
        const std::vector<Candidate> candidates = its_own.candidates();
        for (std::size_t turn = 0; !stop.stop_requested(); ++turn) {
          checker->check_async(its_own.user(turn), candidates, {}, {});  // whatever becomes of it
          std::this_thread::sleep_for(kBetweenItsOwn);
        }
      });
      return OpenLoop(*checker, others, kOthersPerSecond).run(flags_.seconds);
    };
    compare("before", "before", others_wait);
    compare("frozen", "frozen", [&] {
      const auto frozen = cluster_->servers().freeze(0);
      return others_wait();
    });
    take_turns();
    ratio("frozen_shard_p99_vs_before", "frozen", "before", "p99_us");
  }

  const CheckWorkload workload_ = usual_workload(flags_.users);
  const std::unique_ptr<BenchCluster> cluster_ = start_on<BenchCluster>(kRedisCore);
};

const Registered kCluster("cluster", run_part<ClusterPart>);

}  // namespace
}  // namespace fcap::bench
