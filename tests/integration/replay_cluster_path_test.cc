// `fcap-updater replay` into a real cluster, by an account with the rights that the docs name: all
// of it arrives, whatever happens to the cluster meanwhile.
#include <memory>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/cluster_test.h"
#include "support/expected_ledgers.h"
#include "support/kafka_test.h"
#include "support/process.h"
#include "support/shipped_account.h"
#include "test_paths.h"
#include "tests/seed.h"

namespace fcap {
namespace {

using nlohmann::json;
using testing::EventMaker;
using testing::MadeEvent;
using testing::Process;
using testing::RedisCluster;
using testing::wait_until;

constexpr std::uint64_t kSeed = 20'261'125;  // unless FCAP_TEST_SEED says another
constexpr std::chrono::minutes kPatience{3};

class ReplayCluster : public testing::KafkaTest {
 protected:
  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    cluster_ = std::make_unique<RedisCluster>();
    std::vector<std::string> account = {"ACL", "SETUSER", "fcap-writer", "on", ">secret"};
    for (const std::string& right : testing::shipped_rights("writer")) account.push_back(right);
    for (int node = 0; node < RedisCluster::kMembers; ++node) {
      ASSERT_EQ(cluster_->command(node, account), "OK");
    }
    auto made = make_redis_store(testing::options_of(cluster_->url()));
    ASSERT_TRUE(made.ok()) << made.status().text();
    store_ = std::move(made).value();
    ASSERT_TRUE(wait_until([this] { return store_->health().connected; }));
  }

  void produce(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const MadeEvent event = maker_.next();
      producer_->send(topic_, event.user_id, event.json());
      expected_.add(event);
    }
    producer_->flush();
  }

  [[nodiscard]] std::unique_ptr<Process> begin_replay(const std::string& rate) const {
    const std::vector<std::string> words = {FCAP_UPDATER_BINARY,
                                            "replay",
                                            "--json",
                                            "--quiet",
                                            "--rate",
                                            rate,
                                            "--redis.addresses",
                                            cluster_->url(),
                                            "--redis.user",
                                            "fcap-writer",
                                            "--kafka.brokers",
                                            kafka->brokers(),
                                            "--kafka.topic",
                                            topic_,
                                            "--kafka.group_id",
                                            topic_};
    return std::make_unique<Process>(
        words,
        Process::Options{.environment = {"FCAP_UPDATER_REDIS_PASSWORD=secret"}, .input = {}});
  }
  json summary_of(Process& replaying) {
    EXPECT_TRUE(replaying.wait_for(kPatience)) << replaying.errors();
    EXPECT_EQ(replaying.exit_code(), 0) << replaying.errors();
    return json::parse(replaying.output(), nullptr, false);
  }
  void expect_all_there(const Process& replaying) {
    const auto difference = expected_.compare(*store_);
    EXPECT_EQ(difference.missing, 0U) << replaying.errors();
    EXPECT_EQ(difference.surplus, 0U) << replaying.errors();
    EXPECT_EQ(difference.unreadable, 0U) << replaying.errors();
  }
  static void expect_begun_again(const Process& replaying) {
    EXPECT_NE(replaying.errors().find("beginning again"), std::string::npos) << replaying.errors();
  }
  void wait_for_records(int shard) {
    ASSERT_TRUE(wait_until([&] { return std::stoi(cluster_->command(shard, {"DBSIZE"})) > 100; }));
  }

  std::unique_ptr<RedisCluster> cluster_;
  std::unique_ptr<Store> store_;
  EventMaker maker_{test_seed(kSeed), 2'000};
  testing::ExpectedLedgers expected_;
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

}  // namespace
}  // namespace fcap
