// The cluster under fcap's own tests does what they rely on.
#include <memory>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/client.h"
#include "support/certificates.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"

namespace fcap::testing {
namespace cluster_fixture_redis_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using FailOver = RedisCluster::FailOver;

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
  [[nodiscard]] std::string keys_of(int node) const { return cluster_->command(node, {"DBSIZE"}); }
  [[nodiscard]] std::string moved(int slot, int node) const {
    return "MOVED " + std::to_string(slot) + " " + cluster_->address(node);
  }
  void expect_serving(int shard) { set(cluster_->master(shard), RedisCluster::user_of(shard)); }

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

TEST_F(RedisClusterFixture, TakesBackAMoveThatHasBegun) {
  const std::string user = RedisCluster::user_of(0);
  const int slot = redis::slot_of(user);
  const SlotMove move(*cluster_, 0, 1, {slot, slot});
  move.begin();
  EXPECT_THAT(get(0, user), StartsWith("ASK"));
  move.cancel();
  set(0, user);
  EXPECT_EQ(cluster_->owner(slot), 0);
}

TEST_F(RedisClusterFixture, MovesSlotsWithTheirKeysInBothDirections) {
  constexpr Slots kMoved{0, 2730};
  const auto users = RedisCluster::users_in(kMoved, 50);
  for (const std::string& user : users) set(0, user);
  set(0, RedisCluster::users_in({2731, 5460}, 1).front());
  cluster_->move_slots(0, 1, kMoved);
  for (const int slot : {kMoved.first, kMoved.last}) EXPECT_EQ(cluster_->owner(slot), 1);
  EXPECT_EQ(cluster_->owner(kMoved.last + 1), 0);
  EXPECT_EQ(keys_of(0), "1");
  for (const std::string& user : users) EXPECT_EQ(get(1, user), "v");
  cluster_->move_slots(1, 0, kMoved);
  EXPECT_EQ(cluster_->owner(kMoved.last), 0);
  EXPECT_EQ(keys_of(0), "51");
  EXPECT_EQ(keys_of(1), "0");
}

TEST_F(RedisClusterFixture, FailsOverInEachWay) {
  EXPECT_EQ(cluster_->fail_over(0, FailOver::kInOrder), 3);
  EXPECT_EQ(cluster_->fail_over(1, FailOver::kForced), 4);
  EXPECT_EQ(cluster_->fail_over(2, FailOver::kTakenOver), 5);
  cluster_->wait_until_whole();
  EXPECT_EQ(cluster_->fail_over(0, FailOver::kKilled), 0);
  EXPECT_EQ(cluster_->owner(RedisCluster::slots_of(0).first), 0);
  cluster_->start(3);
  cluster_->wait_until_whole();
  EXPECT_EQ(cluster_->replica(0), 3);
  EXPECT_EQ(cluster_->master(1), 4);
  EXPECT_EQ(cluster_->master(2), 5);
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) expect_serving(shard);
}

TEST_F(RedisClusterFixture, HoldsBackReplicasThatThenLoseWhatTheyHaveNotExecuted) {
  const FailOver ways[] = {FailOver::kKilled, FailOver::kTakenOver};
  for (int shard = 0; shard < 2; ++shard) {
    const auto users = RedisCluster::users_in(RedisCluster::slots_of(shard), 2);
    const int replica = cluster_->replica(shard);
    set(shard, users[0]);
    EXPECT_TRUE(wait_until([&] { return keys_of(replica) == "1"; }));
    {
      const auto held_back = cluster_->hold_back(replica);
      set(shard, users[1]);
      EXPECT_EQ(cluster_->fail_over(shard, ways[shard]), replica);
    }
    EXPECT_EQ(get(replica, users[0]), "v");
    EXPECT_EQ(get(replica, users[1]), "");
    set(replica, users[1]);
  }
}

TEST_F(RedisClusterFixture, FreezesAMasterWhoseReplicaTakesItsPlace) {
  {
    const auto frozen = cluster_->freeze(1);
    EXPECT_EQ(cluster_->command(1, {"PING"}), "");
    expect_serving(0);
    expect_serving(2);
    EXPECT_TRUE(wait_until([&] { return cluster_->command(4, {"ROLE"}).starts_with("master"); }));
  }
  cluster_->wait_until_whole();
  EXPECT_EQ(cluster_->replica(1), 1);
  expect_serving(1);
}

TEST_F(RedisClusterFixture, AddsAndRemovesNodes) {
  const std::string user = RedisCluster::user_of(0);
  const int slot = redis::slot_of(user);
  set(0, user);
  const int added = cluster_->add_node();
  EXPECT_EQ(added, 6);
  cluster_->move_slots(0, added, {slot, slot});
  EXPECT_EQ(get(added, user), "v");
  cluster_->move_slots(added, 0, {slot, slot});
  cluster_->remove_node(added);
  EXPECT_EQ(cluster_->members(0).size(), 6U);
  EXPECT_EQ(get(0, user), "v");

  EXPECT_EQ(cluster_->add_replica(0), 6);
  EXPECT_EQ(cluster_->members(1).size(), 7U);
  EXPECT_EQ(keys_of(6), "1");
  cluster_->remove_node(3);
  EXPECT_EQ(cluster_->members(1).size(), 6U);
}

TEST(RedisClusterOverTls, AnswersTlsClientsWithTlsPorts) {
  if (!RedisServer::available() || !Certificates::available()) {
    GTEST_SKIP() << "redis-server, redis-cli or openssl is missing";
  }
  const Certificates authority("fcap test authority");
  RedisCluster cluster(authority.ca_file(), authority.issue("server", "IP:127.0.0.1"));
  EXPECT_THAT(cluster.url(), StartsWith("rediss-cluster://" + cluster.address(0)));
  const std::string user = RedisCluster::user_of(1);
  const int slot = redis::slot_of(user);
  const auto over_tls = [&](int node, const std::vector<std::string>& words) {
    const std::string address = cluster.address(node);
    return cluster.command(
        node, words,
        {"--tls", "--cacert", authority.ca_file(), "-p", address.substr(address.find(':') + 1)});
  };
  EXPECT_THAT(over_tls(0, {"GET", user}), HasSubstr(cluster.address(1)));
  EXPECT_EQ(over_tls(1, {"SET", user, "v"}), "OK");
  cluster.move_slots(1, 2, {slot, slot});
  EXPECT_EQ(over_tls(2, {"GET", user}), "v");
  EXPECT_EQ(cluster.fail_over(2, FailOver::kKilled), 5);
  EXPECT_EQ(cluster.command(5, {"GET", user}), "v");
}

TEST(RedisClusterThatCannotStart, IsAnError) {
  if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
  EXPECT_THROW(RedisCluster({"--maxmemory", "banana"}), std::runtime_error);
}

}  // namespace cluster_fixture_redis_test
}  // namespace fcap::testing
