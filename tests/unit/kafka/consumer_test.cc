#include "kafka/consumer.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/mock_cluster.h"

namespace fcap::kafka {
namespace consumer_test {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Takes what it is given, and says nothing of where to begin.
struct Undecided final : AssignmentListener {
  void on_assigning(std::vector<PartitionOffset>& partitions) override {
    assigned = !partitions.empty();
  }
  void on_revoking(std::span<const PartitionOffset> /*partitions*/, bool /*lost*/) override {
    assigned = false;
  }
  bool assigned = false;
};

class ConsumerOfAGroup : public ::testing::TestWithParam<const char*> {
 protected:
  static constexpr int kMessages = 10;

  void SetUp() override {
    ConsumerOptions options;
    options.connection.brokers = cluster_.brokers();
    options.topic = "events";
    options.assignment_strategy = GetParam();
    auto made = Consumer::create(options, {}, {});
    ASSERT_TRUE(made.ok()) << made.status().text();
    consumer_ = std::move(made).value();
    cluster_.refuse_committed_offsets();
    ASSERT_TRUE(consumer_->subscribe(listener_).ok());
    const auto until = Clock::now() + kPatience;
    while (!listener_.assigned && Clock::now() < until) (void)messages_within(milliseconds{50});
    ASSERT_TRUE(listener_.assigned);
  }

  void TearDown() override {
    batch_.clear();  // a client does not end before its messages
  }

  std::size_t messages_within(milliseconds time, std::size_t enough = 1'000) {
    std::size_t count = 0;
    const auto until = Clock::now() + time;
    while (count < enough && Clock::now() < until) {
      consumer_->poll(batch_, milliseconds{20}, milliseconds{1});
      count += batch_.messages().size();
    }
    return count;
  }

  Cluster cluster_{kMessages};
  Undecided listener_;
  MessageBatch batch_{100};
  std::unique_ptr<Consumer> consumer_;
};

TEST_P(ConsumerOfAGroup, APartitionThatBeginsLateNeedsNoCommittedOffset) {
  EXPECT_EQ(messages_within(milliseconds{300}), 0U);
  EXPECT_FALSE(consumer_->begun(0));
  const PartitionOffset at{0, 4};
  ASSERT_TRUE(consumer_->assign({&at, 1}).ok());
  EXPECT_TRUE(consumer_->begun(0));
  EXPECT_EQ(messages_within(kPatience, kMessages - 4), std::size_t{kMessages - 4});
}

TEST_P(ConsumerOfAGroup, APartitionIsAssignedAgainWhereItIsToldTo) {
  for (const std::int64_t offset : {3, 7, 0}) {
    const PartitionOffset at{0, offset};
    ASSERT_TRUE(consumer_->assign({&at, 1}).ok());
    const auto left = static_cast<std::size_t>(kMessages - offset);
    EXPECT_EQ(messages_within(kPatience, left), left) << offset;
  }
  std::vector<std::int32_t> failed;
  const PartitionOffset at{0, 5};
  consumer_->seek({&at, 1}, failed);
  EXPECT_TRUE(failed.empty());
  EXPECT_EQ(messages_within(kPatience, 5), 5U);
}

// librdkafka refuses a session that is longer than max.poll.interval.ms.
TEST(ConsumerSession, MayBeLongerThanTheGroupWouldWaitForAMember) {
  const Cluster cluster(1);
  ConsumerOptions options;
  options.connection.brokers = cluster.brokers();
  options.topic = "events";
  for (const char* session : {"6000", "60000", "400000"}) {
    options.connection.properties = {{"session.timeout.ms", session}};
    const auto made = Consumer::create(options, {}, {});
    EXPECT_TRUE(made.ok()) << session << ": " << made.status().text();
  }
}

TEST(ConsumerOfTwoPartitions, TellsThemApart) {
  constexpr int kEach = 20;
  Cluster cluster(kEach, "events", 2);
  for (int i = 0; i < kEach; ++i) cluster.produce("events", 1);
  cluster.flush();
  ConsumerOptions options;
  options.connection.brokers = cluster.brokers();
  options.topic = "events";
  auto made = Consumer::create(options, {}, {});
  ASSERT_TRUE(made.ok()) << made.status().text();
  Consumer& consumer = *made.value();
  ASSERT_TRUE(consumer.assign(std::vector<PartitionOffset>{{0, 0}, {1, 5}}).ok());
  EXPECT_TRUE(consumer.begun(1));
  std::map<std::int32_t, int> read;
  std::map<std::int32_t, std::int64_t> ends;
  MessageBatch batch{100};
  const auto until = Clock::now() + kPatience;
  while (ends.size() < 2 && Clock::now() < until) {
    consumer.poll(batch, milliseconds{20}, milliseconds{1});
    for (const rd_kafka_message_t* message : batch.messages()) ++read[message->partition];
    for (const auto& [partition, end] : consumer.ends_reached()) ends[partition] = end;
  }
  EXPECT_EQ(read, (std::map<std::int32_t, int>{{0, kEach}, {1, kEach - 5}}));
  EXPECT_EQ(ends, (std::map<std::int32_t, std::int64_t>{{0, kEach}, {1, kEach}}));

  consumer.note_unreadable(1, "something");
  const auto read_to_end = [&](std::int32_t partition) {
    std::vector<std::int32_t> failed;
    consumer.seek(std::vector<PartitionOffset>{{partition, kEach - 5}}, failed);
    EXPECT_TRUE(failed.empty());
    read.clear();
    while (read[partition] < 5 && Clock::now() < until) {
      consumer.poll(batch, milliseconds{20}, milliseconds{1});
      for (const rd_kafka_message_t* message : batch.messages()) ++read[message->partition];
    }
    EXPECT_EQ(read, (std::map<std::int32_t, int>{{partition, 5}}));
  };
  read_to_end(0);
  EXPECT_TRUE(consumer.partition_errors().contains(1)) << "only the other was delivered";
  read_to_end(1);
  EXPECT_TRUE(consumer.partition_errors().empty());
  batch.clear();  // a client does not end before its messages
}

// As a static member gets it that asks for another topic than before its restart; librdkafka takes
// the name for a pattern here.
TEST(ConsumerOfAnotherTopic, SaysThatItHasItsPartitionsAndReadsNothingOfThem) {
  Cluster cluster(5);
  ConsumerOptions options;
  options.connection.brokers = cluster.brokers();
  options.topic = "^ev.*";
  auto made = Consumer::create(options, {}, {});
  ASSERT_TRUE(made.ok()) << made.status().text();
  Consumer& consumer = *made.value();
  Undecided listener;
  ASSERT_TRUE(consumer.subscribe(listener).ok());
  MessageBatch batch{100};
  const auto until = Clock::now() + kPatience;
  while (consumer.partition_errors().empty() && Clock::now() < until) {
    consumer.poll(batch, milliseconds{20}, milliseconds{1});
    EXPECT_TRUE(batch.messages().empty());
  }
  ASSERT_TRUE(consumer.partition_errors().contains(Consumer::kTopic));
  EXPECT_NE(consumer.partition_errors().at(Consumer::kTopic).text.find("of another topic"),
            std::string::npos);
  EXPECT_FALSE(listener.assigned);
}

INSTANTIATE_TEST_SUITE_P(Protocols, ConsumerOfAGroup,
                         ::testing::Values("range,roundrobin", "cooperative-sticky"),
                         [](const auto& param) {
                           return std::string(param.param) == "cooperative-sticky" ? "cooperative"
                                                                                   : "eager";
                         });

}  // namespace consumer_test
}  // namespace fcap::kafka
