#include "kafka/lone_consumer.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/mock_cluster.h"
#include "tests/support/part.h"

namespace fcap::kafka {
namespace lone_consumer_test {

using Clock = std::chrono::steady_clock;
using Polled = LoneConsumer::Polled;
using std::chrono::milliseconds;

constexpr int kEach = 10;

class LoneConsumerOfTwoTopics : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = LoneConsumer::create({{.brokers = cluster_.brokers()}, topics_, "group", {}});
    ASSERT_TRUE(made.ok()) << made.status().text();
    consumer_ = std::move(made).value();
  }
  Polled next() {
    const auto until = Clock::now() + kPatience;
    Polled polled;
    while (polled.is == Polled::Is::kNothing && Clock::now() < until) {
      polled = consumer_->poll(milliseconds{50});
    }
    return polled;
  }

  const TopicNames topics_ = {"clicks", "views"};
  Cluster cluster_{kEach, topics_};
  std::unique_ptr<LoneConsumer> consumer_;
};

TEST_F(LoneConsumerOfTwoTopics, ReadsWhatItIsAssignedUpToItsEnd) {
  const TopicPartition views = part(0, 1);
  ASSERT_TRUE(consumer_->assign(std::vector<PartitionOffset>{{part(0, 0), 0}, {views, 0}}).ok());
  (void)next();
  ASSERT_TRUE(consumer_->assign(std::vector<PartitionOffset>{{views, kEach - 2}}).ok());
  for (const std::int64_t offset : {kEach - 2, kEach - 1}) {
    const Polled polled = next();
    ASSERT_EQ(polled.is, Polled::Is::kMessage) << polled.error.text();
    EXPECT_EQ(polled.partition, views) << "nothing of an earlier assignment";
    EXPECT_EQ(polled.offset, offset);
    EXPECT_EQ(payload_of(*polled.message), "views");
  }
  const Polled end = next();
  EXPECT_EQ(end.is, Polled::Is::kEnd);
  EXPECT_EQ(end.partition, views);
  EXPECT_EQ(end.offset, kEach);
}

TEST_F(LoneConsumerOfTwoTopics, SaysThatAnOffsetDoesNotExist) {
  ASSERT_TRUE(consumer_->assign(std::vector<PartitionOffset>{{part(0, 0), 1'000}}).ok());
  const Polled polled = next();
  EXPECT_EQ(polled.is, Polled::Is::kOutOfRange);
  EXPECT_EQ(polled.partition, part(0, 0));
  EXPECT_FALSE(polled.error.ok());
}

TEST_F(LoneConsumerOfTwoTopics, KnowsTheEndsOfALog) {
  const auto marks = consumer_->watermarks(part(0, 1), kPatience);
  ASSERT_TRUE(marks.ok()) << marks.status().text();
  EXPECT_EQ(marks.value().low, 0);
  EXPECT_EQ(marks.value().high, kEach);
  EXPECT_FALSE(consumer_->watermarks(part(7, 1), kPatience).ok());
}

class LoneConsumerOfTwoPartitions : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const TopicPartition partition : both_) cluster_.elect_leader("clicks", partition.number);
    auto made = LoneConsumer::create({{.brokers = cluster_.brokers()}, {"clicks"}, "group", {}});
    ASSERT_TRUE(made.ok()) << made.status().text();
    consumer_ = std::move(made).value();
  }
  void ask_for_ends_of_both() {
    auto ends = consumer_->watermarks(both_, kPatience);
    ASSERT_TRUE(ends.ok()) << ends.status().text();
    ends_ = std::move(ends).value();
  }
  void expect_ends_of_the_first() {
    const Result<Watermarks>& known = ends_.at(part(0));
    ASSERT_TRUE(known.ok()) << known.status().text();
    EXPECT_EQ(known.value().low, 0);
    EXPECT_EQ(known.value().high, kEach);
  }

  const std::vector<TopicPartition> both_ = {part(1), part(0)};
  Cluster cluster_{kEach, {"clicks"}, 2, 2};
  std::unique_ptr<LoneConsumer> consumer_;
  LoneConsumer::Ends ends_;
};

TEST_F(LoneConsumerOfTwoPartitions, APartitionThatIsRefusedHidesNotTheEndsOfAnother) {
  cluster_.refuse_list_offsets(2, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR);  // both, and one alone
  ASSERT_NO_FATAL_FAILURE(ask_for_ends_of_both());
  expect_ends_of_the_first();
  EXPECT_FALSE(ends_.at(part(1)).ok());
}

// The broker refuses one of two partitions, and librdkafka then refuses both.
TEST_F(LoneConsumerOfTwoPartitions, APartitionThatIsNowLedElsewhereHidesNotTheEndsOfAnother) {
  ASSERT_NO_FATAL_FAILURE(ask_for_ends_of_both());
  cluster_.elect_leader("clicks", 1, 2);
  ASSERT_NO_FATAL_FAILURE(ask_for_ends_of_both());
  expect_ends_of_the_first();
}

TEST(PartitionLists, LeaveOutTopicsThatAreNotNamed) {
  const TopicNames all = {"clicks", "views"};
  const auto list =
      make_partition_list(all, std::vector<PartitionOffset>{{part(3, 0), 30}, {part(4, 1), 40}});
  EXPECT_EQ(index_of({"clicks"}, "views"), std::nullopt);
  EXPECT_EQ(index_of({"views"}, "views"), TopicIndex{0});
  const auto known = offsets_of({"views"}, *list);
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].partition, part(4, 0));
  EXPECT_EQ(known[0].offset, 40);
}

}  // namespace lone_consumer_test
}  // namespace fcap::kafka
