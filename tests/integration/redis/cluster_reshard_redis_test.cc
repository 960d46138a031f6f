// Slots move between real shards while a store writes and reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/client.h"
#include "support/cluster_test.h"

namespace fcap {
namespace cluster_reshard_redis_test {

using namespace std::chrono_literals;
using testing::ClusterLoad;
using testing::RedisCluster;
using testing::SlotMove;
using testing::Slots;
using testing::StoreCalls;
using testing::wait_until;

class ReshardedCluster : public testing::ClusterTest {
 protected:
  static constexpr std::size_t kUsers = 400;

  static Instant expiry() {
    return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()) + 1h;
  }
  // Appends, reads and replaces a record: what it holds afterwards.
  void use(const std::string& key, std::string& record) {
    StoreCalls calls(*store_);
    const auto appended = calls.append(key, "a", expiry());
    EXPECT_EQ(appended.code, StoreCode::kOk) << key << " " << appended.text;
    record += "a";
    EXPECT_EQ(calls.get(key).record, record) << key;
    const auto replaced = calls.compare_and_set(key, record, record + "b", expiry());
    EXPECT_EQ(replaced.code, StoreCode::kOk) << key << " " << replaced.text;
    record += "b";
    EXPECT_EQ(calls.compare_and_set(key, "other", "c", expiry()).code, StoreCode::kConflict);
    EXPECT_EQ(calls.get(key).record, record) << key;
  }
};

TEST_F(ReshardedCluster, SOAK_HalfOfTheSlotsMoveAndComeBackUnderLoad) {
  struct Move {
    int from;
    int to;
    Slots slots;
  };
  const Move moves[] = {{0, 1, {0, 2730}}, {1, 2, {5461, 8191}}, {2, 0, {10923, 13652}}};
  ClusterLoad load(*store_, users(kUsers));
  EXPECT_TRUE(load.wait_for_more(kUsers));
  for (const Move& move : moves) cluster_->move_slots(move.from, move.to, move.slots);
  EXPECT_TRUE(load.wait_for_more(kUsers));
  for (const Move& move : moves) cluster_->move_slots(move.to, move.from, move.slots);
  EXPECT_TRUE(load.wait_for_more(kUsers));
  expect_all_well(load);
  EXPECT_GT(value_of(store_->health(), "cluster_moved"), 0U);
  EXPECT_GT(value_of(store_->health(), "cluster_asked"), 0U);
}

TEST_F(ReshardedCluster, EveryOperationFollowsASlotOnItsWay) {
  const int slot = redis::slot_of(RedisCluster::user_of(0));
  std::vector<std::string> keys;
  for (const auto& user : RedisCluster::users_in({slot, slot}, 4))
    keys.push_back("fcap:{" + user + "}");
  std::vector<std::string> records(keys.size());
  use(keys[0], records[0]);
  use(keys[1], records[1]);
  const SlotMove move(*cluster_, 0, 1, {slot, slot});
  move.begin();
  // Those that are still there; one that is made where they go; and one that moves meanwhile.
  use(keys[0], records[0]);
  use(keys[2], records[2]);
  EXPECT_EQ(move.move_keys(1), 1U);
  for (std::size_t i = 0; i < keys.size(); ++i) use(keys[i], records[i]);
  while (move.move_keys() > 0) {
  }
  for (std::size_t i = 0; i < keys.size(); ++i) use(keys[i], records[i]);
  move.end();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    use(keys[i], records[i]);
    EXPECT_EQ(cluster_->command(1, {"GET", keys[i]}), records[i]);
    EXPECT_GT(std::stoll(cluster_->command(1, {"PTTL", keys[i]})), 0);
  }
}

TEST_F(ReshardedCluster, ANodeJoinsTakesSlotsGivesThemBackAndGoes) {
  constexpr Slots kMoved{0, 1364};
  ClusterLoad load(*store_, users(kUsers));
  EXPECT_TRUE(load.wait_for_more(kUsers));
  const int added = cluster_->add_node();
  cluster_->move_slots(0, added, kMoved);
  EXPECT_TRUE(load.wait_for_more(kUsers));
  EXPECT_GT(cluster_->calls(added, "append"), 0);
  cluster_->move_slots(added, 0, kMoved);
  // Whoever has not heard of that yet would ask the node that is gone.
  EXPECT_TRUE(wait_until([&] { return value_of(store_->health(), "cluster_masters") == 3; }));
  cluster_->remove_node(added);
  EXPECT_TRUE(load.wait_for_more(kUsers));
  expect_all_well(load);
}

}  // namespace cluster_reshard_redis_test
}  // namespace fcap
