// `fcap-updater sweep` on a real cluster, by an account with the rights that the docs name.
#include <atomic>
#include <memory>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/append_event.h"
#include "support/cluster_test.h"
#include "support/expected_ledgers.h"
#include "support/process.h"
#include "support/shipped_account.h"
#include "test_paths.h"

namespace fcap {
namespace sweep_cluster_path_test {

using nlohmann::json;
using testing::EventMaker;
using testing::Finished;
using testing::MadeEvent;
using testing::Process;
using testing::RedisCluster;
using testing::SlotMove;

constexpr std::chrono::days kRetention{32};  // the default
constexpr std::size_t kUsers = 600;
constexpr std::size_t kEventsPerUser = 4;

class UpdaterSweepCluster : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!testing::RedisServer::available()) return;
    cluster = std::make_unique<RedisCluster>();
    std::vector<std::string> account = {"ACL", "SETUSER", "sweeper", "on", ">secret"};
    for (const std::string& right : testing::shipped_rights("writer")) account.push_back(right);
    for (int node = 0; node < RedisCluster::kMembers; ++node) {
      ASSERT_EQ(cluster->command(node, account), "OK");
    }
  }
  static void TearDownTestSuite() { cluster.reset(); }

  void SetUp() override {
    if (!cluster) GTEST_SKIP() << "redis-server or redis-cli is missing";
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
      ASSERT_EQ(cluster->command(shard, {"FLUSHALL"}), "OK");
    }
    auto made = make_redis_store(testing::options_of(cluster->url()));
    ASSERT_TRUE(made.ok()) << made.status().text();
    store_ = std::move(made).value();
    const auto connected = [this] { return store_->health().connected; };
    ASSERT_TRUE(testing::wait_until(connected)) << store_->health().last_error;
  }

  // Each event is an entry of its own, as the updater appends it.
  void append_to(const std::vector<std::string>& users) {
    for (const std::string& user : users) {
      for (std::size_t i = 0; i < kEventsPerUser; ++i) {
        MadeEvent event = maker_.next();
        event.user_id = user;
        testing::append_event(*store_, event, event.time + kRetention);
        expected_.add(event);
      }
    }
  }

  [[nodiscard]] static std::vector<std::string> command(const std::string& keys_per_second) {
    return {FCAP_UPDATER_BINARY, "sweep", "--json", "--quiet", "--redis.addresses", cluster->url(),
            "--redis.user", "sweeper",
            // The rate is kept from one such number of records to the next.
            "--compaction.sweep_scan_count", "50", "--compaction.redis_deadline", "30s",
            "--compaction.sweep_keys_per_second", keys_per_second};
  }
  static json sweep() {
    const Finished finished =
        testing::run(command("1000000"), {.environment = kPassword, .input = {}});
    EXPECT_EQ(finished.exit_code, 0) << finished.output << finished.errors;
    return json::parse(finished.output, nullptr, false);
  }

  // All were compacted, by one sweep.
  void expect_swept(const json& first, std::size_t users) {
    EXPECT_EQ(first["complete"], true) << first;
    EXPECT_EQ(first["records"], users) << first;
    EXPECT_EQ(first["compacted"], users) << first;
    EXPECT_LT(first["bytes_after"], first["bytes_before"]) << first;
    expect_nothing_to_do(users);
  }
  void expect_nothing_to_do(std::size_t users) {
    const json again = sweep();
    EXPECT_EQ(again["records"], users) << again;
    EXPECT_EQ(again["compacted"], 0) << again;
    const auto difference = expected_.compare(*store_);
    EXPECT_EQ(difference.missing, 0U);
    EXPECT_EQ(difference.surplus, 0U);
    EXPECT_EQ(difference.unreadable, 0U);
  }

  static inline std::unique_ptr<RedisCluster> cluster;
  static inline const std::vector<std::string> kPassword = {"FCAP_UPDATER_REDIS_PASSWORD=secret"};
  std::unique_ptr<Store> store_;
  EventMaker maker_{20'241'124, kUsers};
  testing::ExpectedLedgers expected_;
};

TEST_F(UpdaterSweepCluster, RecordsOfAllShardsBecomeShorterAndTheirAnswersStay) {
  const auto users = RedisCluster::users_in({0, 16383}, kUsers);
  append_to(users);
  for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
    EXPECT_NE(cluster->command(shard, {"DBSIZE"}), "0");
  }
  const std::string tag = "{" + users.front() + "}";
  const int owner = cluster->owner(redis::slot_of(tag));
  ASSERT_EQ(cluster->command(owner, {"PERSIST", "fcap:" + tag}), "1");
  ASSERT_EQ(cluster->command(owner, {"SET", "other:" + tag, "another program's"}), "OK");
  const json first = sweep();
  EXPECT_EQ(first["expiries_repaired"], 1) << first;
  expect_swept(first, kUsers);
  EXPECT_NE(cluster->command(owner, {"PTTL", "fcap:" + tag}), "-1");
  EXPECT_EQ(cluster->command(owner, {"GET", "other:" + tag}), "another program's");
}

TEST_F(UpdaterSweepCluster, SlotsInTwoPlacesAreSweptInBoth) {
  append_to(RedisCluster::users_in({100, 103}, 40));
  const SlotMove move(*cluster, 0, 1, {100, 103});
  move.begin();
  const std::size_t moved = move.move_keys(3);
  EXPECT_GT(moved, 0U);
  EXPECT_LT(moved, 40U);
  expect_swept(sweep(), 40);
  while (move.move_keys() > 0) {
  }
  move.end();
  expect_nothing_to_do(40);
  cluster->move_slots(1, 0, {100, 103});
}

TEST_F(UpdaterSweepCluster, SlotsThatMoveMeanwhileAreNeitherMissedNorHarmed) {
  append_to(RedisCluster::users_in({0, 16383}, kUsers));
  Process sweeping(command("200"), {.environment = kPassword, .input = {}});
  std::atomic<bool> over{false};
  std::jthread mover([&over] {
    // From each shard to the next, and back.
    for (int round = 0; !over; ++round) {
      const int from = round % RedisCluster::kShards;
      const int to = (from + 1) % RedisCluster::kShards;
      const int first = RedisCluster::slots_of(from).first + round % 7 * 256;
      cluster->move_slots(from, to, {first, first + 255});
      cluster->move_slots(to, from, {first, first + 255});
    }
  });
  EXPECT_TRUE(sweeping.wait_for(std::chrono::minutes{3})) << sweeping.errors();
  over = true;
  mover.join();
  EXPECT_EQ(sweeping.exit_code(), 0) << sweeping.output() << sweeping.errors();
  expect_swept(json::parse(sweeping.output(), nullptr, false), kUsers);
}

}  // namespace sweep_cluster_path_test
}  // namespace fcap
