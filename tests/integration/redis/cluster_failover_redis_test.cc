// Shards of a real cluster fail over, freeze and die while a store writes and reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/cluster_test.h"

namespace fcap {
namespace cluster_failover_redis_test {

using testing::ClusterLoad;
using testing::RedisCluster;
using testing::wait_until;
using FailOver = RedisCluster::FailOver;

class FailingCluster : public testing::ClusterTest {
 protected:
  static constexpr std::size_t kUsers = 100;

  [[nodiscard]] std::unique_ptr<ClusterLoad> load_on(int shard) const {
    auto load = std::make_unique<ClusterLoad>(
        *store_, RedisCluster::users_in(RedisCluster::slots_of(shard), kUsers), 2);
    EXPECT_TRUE(load->wait_for_more(kUsers)) << load->seen().first_failures;
    return load;
  }
};

TEST_F(FailingCluster, AFailoverInOrderLosesNothing) {
  ClusterLoad load(*store_, users(3 * kUsers));
  EXPECT_TRUE(load.wait_for_more(kUsers));
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    cluster_->fail_over(shard, FailOver::kInOrder);
    EXPECT_TRUE(load.wait_for_more(3 * kUsers)) << load.seen().first_failures;
  }
  expect_none_lost(load);
}

TEST_F(FailingCluster, AKilledMastersReplicaIsFoundAndTheOthersNoticeNothing) {
  const auto failing = load_on(0);
  const auto second = load_on(1);
  const auto third = load_on(2);
  const int successor = cluster_->fail_over(0, FailOver::kKilled);
  EXPECT_TRUE(failing->wait_for_more(kUsers)) << failing->seen().first_failures;
  EXPECT_GT(cluster_->calls(successor, "append"), 0);
  expect_all_well(*second);
  expect_all_well(*third);
  failing->stop();
  EXPECT_EQ(failing->seen().foreign, 0U);

  // What is written now is there to stay.
  const auto after = load_on(0);
  cluster_->start(0);
  cluster_->wait_until_whole();
  cluster_->fail_over(0, FailOver::kInOrder);
  EXPECT_TRUE(after->wait_for_more(kUsers)) << after->seen().first_failures;
  expect_none_lost(*after);
}

TEST_F(FailingCluster, AFrozenShardCostsOnlyItsOwnUsers) {
  // Nobody takes its place.
  EXPECT_EQ(cluster_->command(4, {"CONFIG", "SET", "cluster-replica-no-failover", "yes"}), "OK");
  const auto frozen = load_on(1);
  const auto first = load_on(0);
  const auto third = load_on(2);
  {
    const auto disturbance = cluster_->freeze(1);
    EXPECT_TRUE(wait_until([&] { return frozen->seen().failures > 0; }));
    EXPECT_TRUE(first->wait_for_more(50 * kUsers)) << first->seen().first_failures;
    EXPECT_TRUE(third->wait_for_more(50 * kUsers)) << third->seen().first_failures;
  }
  expect_all_well(*first);
  expect_all_well(*third);
  EXPECT_TRUE(frozen->wait_for_more(kUsers)) << frozen->seen().first_failures;
  expect_none_lost(*frozen);
}

}  // namespace cluster_failover_redis_test
}  // namespace fcap
