// `fcap-updater replay` into a real cluster, by an account with the rights that the docs name: all
// of it arrives, whatever happens to the cluster meanwhile.
#include <memory>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/updater_on_cluster.h"

namespace fcap {
namespace replay_cluster_path_test {

using nlohmann::json;
using testing::Process;
using testing::RedisCluster;
using testing::wait_until;

constexpr std::chrono::minutes kPatience{3};

class ReplayCluster : public testing::UpdaterOnCluster {
 protected:
  [[nodiscard]] std::unique_ptr<Process> begin_replay(const std::string& rate) const {
    return start("replay", {"--json", "--quiet", "--rate", rate});
  }
  json summary_of(Process& replaying) {
    EXPECT_TRUE(replaying.wait_for(kPatience)) << replaying.errors();
    EXPECT_EQ(replaying.exit_code(), 0) << replaying.errors();
    return json::parse(replaying.output(), nullptr, false);
  }
  static void expect_begun_again(const Process& replaying) {
    EXPECT_NE(replaying.errors().find("beginning again"), std::string::npos) << replaying.errors();
  }
  void wait_for_records(int shard) {
    ASSERT_TRUE(wait_until([&] { return std::stoi(cluster_->command(shard, {"DBSIZE"})) > 100; }));
  }
};

TEST_F(ReplayCluster, FillsAllShardsAndChangesNothingTheSecondTime) {
  produce(20'000);
  auto first = begin_replay("1000000");
  EXPECT_EQ(summary_of(*first)["added"], 20'000);
  expect_all_there(*first);
  auto second = begin_replay("1000000");
  EXPECT_EQ(summary_of(*second)["records_changed"], 0);
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    EXPECT_EQ(cluster_->command(shard, {"KEYS", "fcap:!mark:*"}), "") << "left behind";
  }
}

TEST_F(ReplayCluster, AShardThatIsEmptiedMeanwhileIsFilledAgain) {
  produce(20'000);
  auto replaying = begin_replay("5000");
  wait_for_records(1);
  ASSERT_EQ(cluster_->command(1, {"FLUSHALL"}), "OK");
  summary_of(*replaying);
  expect_begun_again(*replaying);
  expect_all_there(*replaying);
}

TEST_F(ReplayCluster, AReplicaThatWasBehindAndIsPromotedMeanwhileIsFilledAgain) {
  produce(20'000);
  std::unique_ptr<Process> replaying;
  {
    const auto held_back = cluster_->hold_back(cluster_->replica(2));
    replaying = begin_replay("5000");
    wait_for_records(2);
    cluster_->fail_over(2, RedisCluster::FailOver::kTakenOver);
  }
  summary_of(*replaying);
  expect_begun_again(*replaying);
  expect_all_there(*replaying);
}

TEST_F(ReplayCluster, SlotsThatMoveMeanwhileLoseNothing) {
  produce(20'000);
  auto replaying = begin_replay("5000");
  wait_for_records(0);
  cluster_->move_slots(0, 1, {0, 1000});
  cluster_->move_slots(1, 2, {6000, 7000});
  summary_of(*replaying);
  expect_all_there(*replaying);
}

}  // namespace replay_cluster_path_test
}  // namespace fcap
