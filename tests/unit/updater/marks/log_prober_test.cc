// Looks at the logs of librdkafka's own imitation of a cluster.
#include "updater/marks/log_prober.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/mock_cluster.h"

namespace fcap::updater {
namespace log_prober_test {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr const char* kTopic = "events";
constexpr int kPartitions = 4;
constexpr int kBrokers = 4;

class LogProberTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::int32_t partition = 0; partition < kPartitions; ++partition) {
      cluster_.elect_leader(kTopic, partition);
      for (int i = 0; i <= partition; ++i) cluster_.produce(kTopic, partition, "key", "value");
    }
    cluster_.flush();
    auto made = LogProber::create(
        {.connection = {.brokers = cluster_.brokers()}, .topic = kTopic, .group_id = "group"});
    ASSERT_TRUE(made.ok()) << made.status().text();
    prober_ = std::move(made).value();
  }
  // About the first message of the partition.
  void ask(std::int32_t partition) {
    prober_->ask({.partition = partition, .ticket = ++asked_, .offsets = {0}});
  }
  // In the order in which they are known, by partition.
  std::vector<std::pair<std::int32_t, bool>> answers(std::size_t count) {
    std::vector<std::pair<std::int32_t, bool>> found;
    const auto until = Clock::now() + kafka::kPatience;
    while (found.size() < count && Clock::now() < until) {
      auto answer = prober_->take();
      if (!answer) {
        std::this_thread::sleep_for(milliseconds{1});
        continue;
      }
      found.emplace_back(answer->partition, answer->status.ok());
      by_ticket_.insert_or_assign(answer->ticket, *answer);
      last_.insert_or_assign(answer->partition, std::move(*answer));
    }
    return found;
  }
  // While the prober is busy with one question, the next ones gather.
  void keep_busy_with(std::int32_t partition) {
    ask(partition);
    std::this_thread::sleep_for(milliseconds{20});
  }
  void expect_found(std::int32_t partition) {
    const LogLooks::LookAnswer& answer = last_.at(partition);
    ASSERT_TRUE(answer.status.ok()) << partition << ": " << answer.status.text();
    EXPECT_EQ(answer.look.low, 0);
    EXPECT_EQ(answer.look.high, partition + 1);
    ASSERT_TRUE(answer.look.found.at(0));
    EXPECT_EQ(answer.look.found.at(0)->offset, 0);
  }

  kafka::Cluster cluster_{0, kTopic, kPartitions, kBrokers};
  std::unique_ptr<LogProber> prober_;
  std::uint64_t asked_ = 0;
  std::map<std::int32_t, LogLooks::LookAnswer> last_;
  std::map<std::uint64_t, LogLooks::LookAnswer> by_ticket_;
};

TEST_F(LogProberTest, APartitionWithoutALeaderKeepsNoOtherOneFromItsAnswer) {
  ask(1);
  (void)answers(1);
  expect_found(1);
  cluster_.lose_leader(kTopic, 1);
  keep_busy_with(1);
  for (const std::int32_t partition : {1, 0, 2}) ask(partition);
  (void)answers(4);
  expect_found(0);
  expect_found(2);
  EXPECT_FALSE(last_.at(1).status.ok());
  cluster_.elect_leader(kTopic, 1);
  ask(1);
  (void)answers(1);
  expect_found(1);
}

TEST_F(LogProberTest, ABrokerThatDoesNotAnswerKeepsNoPartitionOfAnotherOneFromItsAnswer) {
  for (const std::int32_t partition : {1, 2}) cluster_.elect_leader(kTopic, partition, 2);
  cluster_.stop_broker(2);
  keep_busy_with(1);
  for (const std::int32_t partition : {1, 2, 0, 3}) ask(partition);
  (void)answers(5);
  ASSERT_EQ(last_.size(), 4U);
  expect_found(0);
  expect_found(3);
  EXPECT_FALSE(last_.at(1).status.ok());
  EXPECT_FALSE(last_.at(2).status.ok());
}

// A question about leaders may go to any broker that is connected, so most of them are frozen.
TEST_F(LogProberTest, FrozenBrokersThatAreAskedForLeadersKeepNoPartitionFromItsAnswer) {
  for (const std::int32_t partition : {1, 2, 3}) {
    cluster_.elect_leader(kTopic, partition, partition + 1);
  }
  for (const std::int32_t partition : {0, 1, 2, 3}) {
    ask(partition);
    (void)answers(1);
    expect_found(partition);
  }
  for (std::int32_t broker = 2; broker <= kBrokers; ++broker) cluster_.freeze_broker(broker);
  for (int look = 0; look < 3; ++look) {
    last_.clear();
    ask(0);
    (void)answers(1);
    ASSERT_EQ(last_.size(), 1U);
    expect_found(0);
  }
}

// In a cluster, each shard's mark is asked about at once.
TEST_F(LogProberTest, QuestionsAboutOnePartitionAreAllAnswered) {
  ask(0);
  (void)answers(1);
  keep_busy_with(0);
  by_ticket_.clear();
  const std::vector<std::vector<std::int64_t>> asked = {{0, 3}, {2}, {3}, {3, 1}, {9}};
  for (const auto& offsets : asked) {
    prober_->ask({.partition = 3, .ticket = ++asked_, .offsets = offsets});
  }
  // One more: what kept it busy, which needs not be answered first.
  (void)answers(1 + asked.size());
  std::erase_if(by_ticket_, [](const auto& each) { return each.second.partition != 3; });
  ASSERT_EQ(by_ticket_.size(), asked.size());
  auto offsets = asked.begin();
  for (const auto& [ticket, answer] : by_ticket_) {
    ASSERT_TRUE(answer.status.ok()) << answer.status.text();
    ASSERT_EQ(answer.look.found.size(), offsets->size());
    for (std::size_t i = 0; i < offsets->size(); ++i) {
      const std::int64_t offset = offsets->at(i);
      const auto& found = answer.look.found.at(i);
      ASSERT_EQ(found.has_value(), offset < answer.look.high) << offset;
      if (!found) continue;
      EXPECT_EQ(found->offset, offset);
    }
    ++offsets;
  }
}

}  // namespace log_prober_test
}  // namespace fcap::updater
