#include "kafka/groupless_consumer.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/mock_cluster.h"

namespace fcap::kafka {
namespace lone_consumer_test {

using Clock = std::chrono::steady_clock;
using Polled = GrouplessConsumer::Polled;
using std::chrono::milliseconds;

constexpr int kEach = 10;

class GrouplessConsumerOfTwoPartitions : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::int32_t partition : both_) cluster_.elect_leader("clicks", partition);
    for (int i = 0; i < kEach; ++i) cluster_.produce("clicks", 1);
    cluster_.flush();
    auto made = GrouplessConsumer::create({{.brokers = cluster_.brokers()}, "clicks", "group", {}});
    ASSERT_TRUE(made.ok()) << made.status().text();
    consumer_ = std::move(made).value();
  }
  Polled next() {
    const auto until = Clock::now() + kPatience;
    Polled polled;
    while (polled.is == Polled::PolledKind::kNothing && Clock::now() < until) {
      polled = consumer_->poll(milliseconds{50});
    }
    return polled;
  }
  void ask_for_ends_of_both() {
    auto ends = consumer_->watermarks(both_, kPatience);
    ASSERT_TRUE(ends.ok()) << ends.status().text();
    ends_ = std::move(ends).value();
  }
  void expect_ends_of_the_first() {
    const Result<Watermarks>& known = ends_.at(0);
    ASSERT_TRUE(known.ok()) << known.status().text();
    EXPECT_EQ(known.value().low, 0);
    EXPECT_EQ(known.value().high, kEach);
  }

  const std::vector<std::int32_t> both_ = {1, 0};
  Cluster cluster_{kEach, "clicks", 2, 2};
  std::unique_ptr<GrouplessConsumer> consumer_;
  GrouplessConsumer::Ends ends_;
};

TEST_F(GrouplessConsumerOfTwoPartitions, ReadsWhatItIsAssignedUpToItsEnd) {
  ASSERT_TRUE(consumer_->assign(std::vector<PartitionOffset>{{0, 0}, {1, 0}}).ok());
  (void)next();
  ASSERT_TRUE(consumer_->assign(std::vector<PartitionOffset>{{1, kEach - 2}}).ok());
  for (const std::int64_t offset : {kEach - 2, kEach - 1}) {
    const Polled polled = next();
    ASSERT_EQ(polled.is, Polled::PolledKind::kMessage) << polled.error.text();
    EXPECT_EQ(polled.partition, 1) << "nothing of an earlier assignment";
    EXPECT_EQ(polled.offset, offset);
    EXPECT_EQ(payload_of(*polled.message), "message");
  }
  const Polled end = next();
  EXPECT_EQ(end.is, Polled::PolledKind::kEnd);
  EXPECT_EQ(end.partition, 1);
  EXPECT_EQ(end.offset, kEach);
}

TEST_F(GrouplessConsumerOfTwoPartitions, SaysThatAnOffsetDoesNotExist) {
  ASSERT_TRUE(consumer_->assign(std::vector<PartitionOffset>{{0, 1'000}}).ok());
  const Polled polled = next();
  EXPECT_EQ(polled.is, Polled::PolledKind::kOutOfRange);
  EXPECT_EQ(polled.partition, 0);
  EXPECT_FALSE(polled.error.ok());
}

TEST_F(GrouplessConsumerOfTwoPartitions, KnowsTheEndsOfALog) {
  const auto marks = consumer_->watermarks(1, kPatience);
  ASSERT_TRUE(marks.ok()) << marks.status().text();
  EXPECT_EQ(marks.value().low, 0);
  EXPECT_EQ(marks.value().high, kEach);
  EXPECT_FALSE(consumer_->watermarks(7, kPatience).ok());
}

TEST_F(GrouplessConsumerOfTwoPartitions, APartitionThatIsRefusedHidesNotTheEndsOfAnother) {
  cluster_.refuse_list_offsets(2, RD_KAFKA_RESP_ERR_KAFKA_STORAGE_ERROR);  // both, and one alone
  ASSERT_NO_FATAL_FAILURE(ask_for_ends_of_both());
  expect_ends_of_the_first();
  EXPECT_FALSE(ends_.at(1).ok());
}

// The broker refuses one of two partitions, and librdkafka then refuses both.
TEST_F(GrouplessConsumerOfTwoPartitions, APartitionThatIsNowLedElsewhereHidesNotTheEndsOfAnother) {
  ASSERT_NO_FATAL_FAILURE(ask_for_ends_of_both());
  cluster_.elect_leader("clicks", 1, 2);
  ASSERT_NO_FATAL_FAILURE(ask_for_ends_of_both());
  expect_ends_of_the_first();
}

TEST(PartitionLists, LeaveOutOtherTopics) {
  const auto list = make_partition_list("views", std::vector<PartitionOffset>{{4, 40}});
  EXPECT_TRUE(offsets_of("clicks", *list).empty());
  const auto known = offsets_of("views", *list);
  ASSERT_EQ(known.size(), 1U);
  EXPECT_EQ(known[0].partition, 4);
  EXPECT_EQ(known[0].offset, 40);
}

}  // namespace lone_consumer_test
}  // namespace fcap::kafka
