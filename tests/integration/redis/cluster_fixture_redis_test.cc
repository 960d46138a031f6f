// The cluster under fcap's own tests does what they rely on.
#include <memory>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/client.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"

namespace fcap::testing {
namespace cluster_fixture_redis_test {

using ::testing::StartsWith;

class RedisClusterFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    cluster_ = std::make_unique<RedisCluster>();
  }

  void set(int node, const std::string& key) {
    EXPECT_EQ(cluster_->command(node, {"SET", key, "v"}), "OK");
  }
  [[nodiscard]] std::string get(int node, const std::string& key) const {
    return cluster_->command(node, {"GET", key});
  }
  [[nodiscard]] std::string moved(int slot, int node) const {
    return "MOVED " + std::to_string(slot) + " " + cluster_->address(node);
  }

  std::unique_ptr<RedisCluster> cluster_;
};

TEST_F(RedisClusterFixture, HasThreeShardsOfAThirdOfTheSlots) {
  EXPECT_THAT(cluster_->url(), StartsWith("redis-cluster://" + cluster_->address(0)));
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    EXPECT_EQ(cluster_->master(shard), shard);
    EXPECT_EQ(cluster_->replica(shard), shard + 3);
    EXPECT_EQ(cluster_->owner(RedisCluster::slots_of(shard).first), shard);
    EXPECT_EQ(cluster_->owner(RedisCluster::slots_of(shard).last), shard);
    const std::string key = "fcap:{" + RedisCluster::user_of(shard) + "}";
    const int slot = redis::slot_of(key);
    EXPECT_EQ(cluster_->command(0, {"CLUSTER", "KEYSLOT", key}), std::to_string(slot));
    set(shard, key);
    EXPECT_EQ(get((shard + 1) % 3, key), moved(slot, shard));
    EXPECT_EQ(cluster_->calls(shard, "set"), 1);
  }
}

TEST_F(RedisClusterFixture, HoldsASlotOnItsWay) {
  const std::string tag = "{" + RedisCluster::user_of(0) + "}";
  const int slot = redis::slot_of(tag);
  set(0, tag + "1");
  set(0, tag + "2");
  const SlotMove move(*cluster_, 0, 1, {slot, slot});
  move.begin();
  EXPECT_EQ(move.move_keys(1), 1U);
  const std::string ask = "ASK " + std::to_string(slot) + " " + cluster_->address(1);
  EXPECT_EQ(get(0, tag + "3"), ask);
  EXPECT_THAT(cluster_->command(0, {"MGET", tag + "1", tag + "2"}), StartsWith("TRYAGAIN"));
  EXPECT_EQ(get(1, tag + "1"), moved(slot, 0));
  EXPECT_EQ(cluster_->command(0, {"SET", tag + "3", "v"}, {"-c"}), "OK");
  EXPECT_EQ(move.move_keys(), 1U);
  EXPECT_EQ(move.move_keys(), 0U);
  move.end();
  EXPECT_EQ(cluster_->owner(slot), 1);
  EXPECT_EQ(get(0, tag + "1"), moved(slot, 1));
  for (const char* key : {"1", "2", "3"}) EXPECT_EQ(get(1, tag + key), "v");
}

TEST(RedisClusterThatCannotStart, IsAnError) {
  if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
  EXPECT_THROW(RedisCluster({"--maxmemory", "banana"}), std::runtime_error);
}

}  // namespace cluster_fixture_redis_test
}  // namespace fcap::testing
