// What checks and hard calls say after a loss that nobody sees who could say what is missing: the
// partitions have no owner, or Kafka is away.
#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "redis/config_record.h"
#include "support/gap_answers.h"

namespace fcap {
namespace loss_answers_path_test {

using testing::GapAnswers;
using testing::RedisCluster;
using testing::wait_until;

class LossAnswers : public GapAnswers, public ::testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    const std::string_view topology = GetParam();
    if (!testing::RedisServer::available()) GTEST_SKIP() << "redis-server or redis-cli is missing";
    if (topology == "Sentinels") sentinels_ = std::make_unique<testing::RedisSentinels>();
    if (topology == "Cluster") {
      cluster_ = std::make_unique<RedisCluster>();
      cluster_->set_node_timeout(std::chrono::minutes{1});  // nobody replaces the empty master
      // Without the configuration, which another shard has, everybody would know of the loss.
      losing_ = (cluster_->owner(redis::slot_of("fcap:!config")) + 1) % RedisCluster::kShards;
    }
    GapAnswers::SetUp();
  }
};

// The group gives the partitions of a member that was killed to another one only after its session.
TEST_P(LossAnswers, NothingIsCompleteWhileAnEmptiedRedisHasNoUpdaterWithPartitions) {
  show_viewers();
  produce(1'000);
  auto daemon = start_daemon();
  expect_counted(*daemon);
  expect_viewers_capped(*daemon);
  daemon->kill();
  begin_empty();
  daemon = start_daemon();
  expect_told("the updater was killed, and Redis begins empty");
}

// A Checker that keeps its connection looks every 10 s, and so before the session ends.
TEST_P(LossAnswers, NothingIsCompleteWhileAnEmptiedRedisLacksTheEventsOfAMemberThatIsGone) {
  set_config(kafka->brokers(), 15'000);
  show_viewers();
  produce(1'000);
  const auto stays = start_daemon();
  expect_counted(*stays);
  auto goes = start_daemon();
  const auto shared = [&] { return goes->errors().find("reading from") != std::string::npos; };
  EXPECT_TRUE(wait_until(shared, kPatience)) << goes->errors();
  expect_viewers_capped(*stays);
  goes->kill();
  redis_command({"FLUSHALL"});
  expect_told(stays->errors());
}

// What is known before Kafka can be asked has to do.
TEST_P(LossAnswers, NothingIsCompleteWhileAnEmptiedRedisWaitsForKafka) {
  show_viewers();
  auto daemon = start_daemon();
  expect_counted(*daemon);
  expect_viewers_capped(*daemon);
  daemon->kill();
  begin_empty();
  set_config("127.0.0.1:1");
  daemon = start_daemon();
  ASSERT_TRUE(wait_until([&] { return checker_says_complete() == false; }, kPatience))
      << config_value() << daemon->errors();
  const auto stated_for_all = [&] {
    const auto missing = stated();
    const auto topic = missing.find(redis::missing_before_name(topic_, topic_));
    return topic != missing.end() && topic->second.contains("*");
  };
  EXPECT_TRUE(wait_until(stated_for_all, kPatience)) << config_value() << daemon->errors();
  daemon->kill();
  set_config(kafka->brokers());
  daemon = start_daemon();
  expect_told(daemon->errors());
}

INSTANTIATE_TEST_SUITE_P(Behind, LossAnswers,
                         ::testing::Values("OneAddress", "Sentinels", "Cluster"),
                         [](const auto& topology) { return std::string(topology.param); });

}  // namespace loss_answers_path_test
}  // namespace fcap
