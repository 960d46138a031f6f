// `fcap-updater run` on a real cluster, by an account with the rights that the docs name: nothing
// is lost or counted twice when a master is killed, and its pages say what is away.
#include <algorithm>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "support/updater_on_cluster.h"

namespace fcap {
namespace cluster_path_test {

using ::testing::HasSubstr;
using testing::Process;
using testing::RedisCluster;
using testing::wait_until;

constexpr std::chrono::minutes kPatience{2};

class RunOnCluster : public testing::UpdaterOnCluster {
 protected:
  [[nodiscard]] std::unique_ptr<Process> start(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> settings = {"--kafka.dead_letter_topic", "", "--http.port", "0"};
    settings.insert(settings.end(), more.begin(), more.end());
    return UpdaterOnCluster::start("run", settings);
  }

  [[nodiscard]] static std::string page(const Process& updater, const std::string& path) {
    const std::string errors = updater.errors();
    const std::string before = "serving ";
    const std::size_t at = errors.find(before);
    if (at == std::string::npos) return {};
    const std::size_t url = at + before.size();
    const std::string base = errors.substr(url, errors.find("/metrics", url) - url);
    return testing::run({"curl", "-s", base + path}).output;
  }
  static void expect_page(const Process& updater, const std::string& path,
                          const std::string& text) {
    EXPECT_TRUE(
        wait_until([&] { return page(updater, path).find(text) != std::string::npos; }, kPatience))
        << page(updater, path) << updater.errors();
  }

  void wait_until_counted() {
    wait_until(
        [&] {
          const auto difference = expected_.compare(*store_);
          return difference.missing + difference.unreadable == 0;
        },
        kPatience);
  }
  void expect_all_counted(const Process& updater) {
    wait_until_counted();
    expect_all_there(updater);
    // Nothing is missing in the updater's own opinion either, and it has caught up.
    expect_page(updater, "/metrics", "fcap_updater_gap_offsets 0\n");
    expect_page(updater, "/metrics",
                fmt::format("fcap_updater_lag_messages{{topic=\"{}\"}} 0\n", topic_));
    expect_page(updater, "/readyz", "ready\n");
  }

  // How many of the users' records have appends that compaction has not folded in.
  [[nodiscard]] std::size_t with_tails(const std::vector<std::string>& users) const {
    return static_cast<std::size_t>(
        std::count_if(users.begin(), users.end(), [&](const std::string& user) {
          const auto found = testing::StoreCalls(*store_).get("fcap:{" + user + "}");
          return ledger::compacted_bytes(found.record) != found.record.size();
        }));
  }
  static std::size_t number_on_page(const Process& updater, const std::string& metric) {
    const std::string metrics = page(updater, "/metrics");
    const std::size_t at = metrics.find("\n" + metric + " ");
    return at == std::string::npos ? 0 : std::stoul(metrics.substr(at + metric.size() + 2));
  }

  static void expect_end(Process& updater) {
    updater.send_signal(SIGTERM);
    EXPECT_TRUE(updater.wait_for(kPatience)) << updater.errors();
    EXPECT_EQ(updater.exit_code(), 0) << updater.errors();
  }
};

TEST_F(RunOnCluster, AMasterThatIsKilledLosesNothingAndNothingIsCountedTwice) {
  auto updater = start();
  produce(5'000);
  expect_all_counted(*updater);
  const auto killed = cluster_->master(0);
  produce(3'000);
  const int promoted = cluster_->fail_over(0, RedisCluster::FailOver::kKilled);
  produce(3'000);
  expect_all_counted(*updater);
  // The killed one comes back as a replica, and the updater starts again.
  cluster_->start(killed);
  cluster_->wait_until_whole();
  expect_end(*updater);
  produce(1'000);
  updater = start();
  expect_all_counted(*updater);
  EXPECT_EQ(cluster_->master(0), promoted);
  expect_end(*updater);
}

TEST_F(RunOnCluster, AShardThatIsAwayIsNamedAndItsEventsAreCountedWhenItIsBack) {
  auto updater = start();
  produce(2'000);
  expect_all_counted(*updater);
  expect_page(*updater, "/metrics", "fcap_updater_redis_shards_away 0\n");
  cluster_->kill(cluster_->replica(1));
  {
    const auto frozen = cluster_->freeze(1);
    produce(2'000);
    expect_page(*updater, "/metrics", "fcap_updater_redis_shards_away 1\n");
    expect_page(*updater, "/metrics",
                fmt::format("fcap_updater_lag_messages{{topic=\"{}\"}} 0\n", topic_));
    EXPECT_THAT(page(*updater, "/readyz"), HasSubstr("shard " + cluster_->address(1)));
    EXPECT_THAT(page(*updater, "/metrics"), HasSubstr("fcap_updater_ready 0\n"));
  }
  expect_all_counted(*updater);
  expect_page(*updater, "/metrics", "fcap_updater_redis_shards_away 0\n");
  expect_end(*updater);
}

TEST_F(RunOnCluster, AMasterWithoutSlotsThatCannotBeAskedIsNamed) {
  auto updater = start();
  produce(1'000);
  expect_all_counted(*updater);
  // It does not have the updater's account.
  const int added = cluster_->add_node();
  expect_page(*updater, "/metrics", "fcap_updater_redis_shards_away 1\n");
  expect_page(*updater, "/readyz",
              fmt::format("master {} without slots", cluster_->address(added)));
  give_account(added);
  expect_all_counted(*updater);
  expect_page(*updater, "/metrics", "fcap_updater_redis_shards_away 0\n");
  expect_end(*updater);
}

// Each master has a setting of its own.
TEST_F(RunOnCluster, TheOneMasterThatMayEvictIsNamed) {
  ASSERT_EQ(cluster_->command(2, {"CONFIG", "SET", "maxmemory", "1gb"}), "OK");
  ASSERT_EQ(cluster_->command(2, {"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}), "OK");
  const auto updater = start();
  expect_page(*updater, "/readyz",
              fmt::format("redis: {}: maxmemory-policy is allkeys-lru", cluster_->address(2)));
  EXPECT_THAT(page(*updater, "/metrics"), HasSubstr("fcap_updater_redis_may_evict 1\n"));
  EXPECT_THAT(page(*updater, "/metrics"), HasSubstr("fcap_updater_redis_evicted_keys 0\n"));
  expect_end(*updater);
}

TEST_F(RunOnCluster, RecordsOfEveryShardAreCompactedAndTheirEntriesStay) {
  constexpr std::size_t kUsersPerShard = 40;
  constexpr int kAppends = 3;
  std::vector<std::string> users[RedisCluster::kShards];
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    users[shard] = RedisCluster::users_in(RedisCluster::slots_of(shard), kUsersPerShard);
  }
  const auto updater = start({"--compaction.quiet_after", "1s"});
  // Each time all of them are appended to.
  for (int times = 0; times < kAppends; ++times) {
    for (const auto& of_shard : users) {
      for (const std::string& user : of_shard) {
        auto event = maker_.next();
        event.user_id = user;
        producer_->send(topic_, event.user_id, event.json());
        expected_.add(event);
      }
    }
    producer_->flush();
    wait_until_counted();
  }
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    EXPECT_TRUE(wait_until([&] { return with_tails(users[shard]) == 0; }, kPatience))
        << with_tails(users[shard]) << " in shard " << shard << "\n"
        << updater->errors();
  }
  expect_all_counted(*updater);
  EXPECT_GE(number_on_page(*updater, "fcap_updater_compactions_total"),
            RedisCluster::kShards * kUsersPerShard);
  expect_page(*updater, "/metrics", "fcap_updater_entries_dropped_total 0\n");
  expect_end(*updater);
}

}  // namespace cluster_path_test
}  // namespace fcap
