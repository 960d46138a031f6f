// The write path while a partition has no leader: it waits, and no other one does.
#include <array>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "support/expected_ledgers.h"
#include "support/redis_cluster.h"
#include "support/redis_server.h"
#include "support/running_updater.h"
#include "tests/support/mock_cluster.h"
#include "tests/support/seed.h"

namespace fcap {
namespace leaders_kafka_test {

using testing::RedisCluster;
using testing::RedisServer;
using testing::RunningUpdater;
using testing::wait_until;

constexpr std::int32_t kLost = 1;  // the partition without a leader
constexpr const char* kTopic = "events";

class UpdaterLeaders : public ::testing::Test {
 protected:
  static constexpr std::size_t kPartitions = 3;
  enum class Which : std::uint8_t { kAll, kOthers };

  void SetUp() override {
    if (!RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
  }

  [[nodiscard]] std::unique_ptr<RunningUpdater> start_updater(const std::string& redis) const {
    RunningUpdater::Options options;
    options.brokers = kafka_.brokers();
    options.redis_address = redis;
    options.topic = kTopic;
    return std::make_unique<RunningUpdater>(options);
  }

  static bool wanted(Which which, std::size_t partition) {
    return which == Which::kAll || partition != static_cast<std::size_t>(kLost);
  }
  // A user's events are in one partition.
  void produce(int count, Which which = Which::kAll) {
    while (count > 0) {
      const testing::MadeEvent event = maker_.next();
      const std::size_t partition = std::hash<std::string>()(event.user_id) % kPartitions;
      if (!wanted(which, partition)) continue;
      kafka_.produce(kTopic, static_cast<std::int32_t>(partition), event.user_id, event.json());
      expected_.at(partition).add(event);
      --count;
    }
    kafka_.flush();
  }
  void expect_counted(RunningUpdater& updater, Which which = Which::kAll) {
    for (std::size_t partition = 0; partition < kPartitions; ++partition) {
      if (!wanted(which, partition)) continue;
      EXPECT_TRUE(wait_until([&] {
        return expected_.at(partition).compare(updater.store()).none();
      })) << "partition "
          << partition << "\n"
          << updater.log();
    }
  }
  void expect_missing(RunningUpdater& updater) {
    EXPECT_GT(expected_.at(kLost).compare(updater.store()).missing, 0U);
  }
  static void expect_ready(RunningUpdater& updater) {
    EXPECT_TRUE(wait_until([&] { return updater.not_ready().empty(); })) << updater.not_ready();
    EXPECT_TRUE(wait_until([&] { return updater.metrics().gap_offsets.value() == 0; }));
  }
  static void expect_waiting(RunningUpdater& updater, const std::string& why) {
    const std::string line = "partition 1: " + why;
    EXPECT_TRUE(wait_until([&] { return updater.not_ready().find(line) != std::string::npos; }))
        << updater.not_ready();
    EXPECT_NE(updater.metrics().gap_offsets.value(), 0);
  }

  // The other partitions are read while it has no leader, and it is when it has one again.
  void expect_it_waits_alone(RunningUpdater& updater, const std::string& why) {
    produce(500, Which::kOthers);
    expect_counted(updater, Which::kOthers);
    expect_waiting(updater, why);
    expect_missing(updater);
    kafka_.elect_leader(kTopic, kLost);
    expect_counted(updater);
    expect_ready(updater);
    produce(500);
    expect_counted(updater);
  }
  void expect_it_waits_from_the_start(const std::string& redis) {
    produce(1'000);
    kafka_.lose_leader(kTopic, kLost);
    const auto updater = start_updater(redis);
    expect_counted(*updater, Which::kOthers);
    expect_it_waits_alone(*updater, "cannot find where to begin");
  }

  kafka::Cluster kafka_{0, {kTopic}, static_cast<int>(kPartitions)};
  testing::EventMaker maker_{test_seed(20'261'126), 300};
  std::array<testing::ExpectedLedgers, kPartitions> expected_;
};

TEST_F(UpdaterLeaders, APartitionThatHasNoneAtTheStartWaitsAlone) {
  const RedisServer redis;
  expect_it_waits_from_the_start(redis.address());
}

TEST_F(UpdaterLeaders, APartitionThatHasNoneWhenRedisIsEmptiedWaitsAlone) {
  const RedisServer redis;
  const auto updater = start_updater(redis.address());
  produce(1'000);
  expect_counted(*updater);
  expect_ready(*updater);
  kafka_.lose_leader(kTopic, kLost);
  redis.command({"FLUSHALL"});
  expect_it_waits_alone(*updater, "cannot find where to begin");
}

class UpdaterLeadersOnCluster : public UpdaterLeaders {
 protected:
  void SetUp() override {
    UpdaterLeaders::SetUp();
    if (!IsSkipped()) cluster_ = std::make_unique<RedisCluster>();
  }

  std::unique_ptr<RedisCluster> cluster_;
};

TEST_F(UpdaterLeadersOnCluster, APartitionThatHasNoneAtTheStartWaitsAlone) {
  expect_it_waits_from_the_start(cluster_->url());
}

// The new master has older marks, and of one of them nobody can say whether it is of this log.
TEST_F(UpdaterLeadersOnCluster, APartitionThatHasNoneWhenAShardLosesDataWaitsAlone) {
  const auto updater = start_updater(cluster_->url());
  produce(1'000);
  expect_counted(*updater);
  expect_ready(*updater);
  {
    const auto held_back = cluster_->hold_back(cluster_->replica(2));
    produce(1'000);
    expect_counted(*updater);
    kafka_.lose_leader(kTopic, kLost);
    cluster_->fail_over(2, RedisCluster::FailOver::kTakenOver);
  }
  expect_it_waits_alone(*updater, "Kafka cannot say yet where its reading begins");
}

}  // namespace leaders_kafka_test
}  // namespace fcap
