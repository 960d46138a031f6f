// How a store comes to a real cluster: by whichever node answers, and with a clear word where the
// options do not fit the servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/cluster_test.h"
#include "support/tls_redis.h"

namespace fcap {
namespace cluster_setup_redis_test {

using testing::ClusterLoad;
using testing::is_refused;
using testing::options_of;
using testing::RedisCluster;
using testing::RedisServer;

class ClusterSetup : public testing::ClusterTest {
 protected:
  void expect_all_shards_usable() {
    ClusterLoad load(*store_, users(30), 2);
    EXPECT_TRUE(load.wait_for_more(60));
    expect_all_well(load);
  }
};

TEST_F(ClusterSetup, OneNodeOfManyAddressesIsEnoughAlsoAReplica) {
  RedisOptions some = options();
  some.addresses = {"127.0.0.1:" + std::to_string(testing::free_port()), cluster_->address(5)};
  open(some);
  expect_all_shards_usable();
  cluster_->kill(5);
  cluster_->fail_over(0, RedisCluster::FailOver::kInOrder);
  expect_all_shards_usable();
}

TEST_F(ClusterSetup, ANodeIsNoSingleServer) {
  EXPECT_TRUE(
      is_refused(options_of("redis://" + cluster_->address(0)),
                 "this is a node of a Redis Cluster with 3 masters: set the option topology "
                 "to cluster"));
}

TEST_F(ClusterSetup, AnAccountNeedsTheCommandsThatTellOfTheCluster) {
  const auto give = [&](const std::vector<std::string>& rules) {
    for (int node = 0; node < RedisCluster::kMembers; ++node) {
      std::vector<std::string> words = {"ACL", "SETUSER", "app", "on", ">app"};
      words.insert(words.end(), rules.begin(), rules.end());
      EXPECT_EQ(cluster_->command(node, words), "OK");
    }
  };
  give({"~*", "+@all", "-cluster|slots"});
  RedisOptions app = options();
  app.user = app.password = "app";
  EXPECT_TRUE(is_refused(app, "allow the commands cluster|info and cluster|slots"));
  give({"+cluster|slots"});
  open(app);
  expect_all_shards_usable();
  app.password = "wrong";
  EXPECT_TRUE(is_refused(app, "options user, password"));
}

TEST(ClusterMistakes, ASingleServerIsNoCluster) {
  if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
  const RedisServer single;
  EXPECT_TRUE(is_refused(options_of("redis-cluster://" + single.address()),
                         "this is a single server: set the option topology to single"));
}

TEST(ClusterMistakes, ASentinelIsNoNodeOfACluster) {
  if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
  const RedisServer sentinel({"--sentinel"});
  EXPECT_TRUE(is_refused(options_of("redis-cluster://" + sentinel.address()),
                         "with topology cluster the option addresses must name nodes of one"));
}

}  // namespace cluster_setup_redis_test
}  // namespace fcap
