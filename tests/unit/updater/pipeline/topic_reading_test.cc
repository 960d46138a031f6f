#include "updater/pipeline/topic_reading.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/mock_cluster.h"
#include "tests/unit/updater/support/partition_set_fixture.h"

namespace fcap::updater {
namespace topic_reading_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PartitionSetFixture;

constexpr std::int64_t kMessages = 10;  // of each partition, in the beginning

/// Reads two partitions from 3 on.
class TopicReadingTest : public PartitionSetFixture {
 protected:
  void SetUp() override {
    for (int i = 0; i < kMessages; ++i) cluster_.produce("events", 1);
    cluster_.flush();
    kafka::ConsumerOptions options;
    options.connection.brokers = cluster_.brokers();
    options.topic = "events";
    auto made = kafka::Consumer::create(options, {}, {});
    ASSERT_TRUE(made.ok()) << made.status().text();
    consumer_ = std::move(made).value();
    reading_ = std::make_unique<TopicReading>(*consumer_, set_, 3s, metrics_);
    log_.start = 0;
    std::vector<PartitionOffset> partitions;
    for (const std::int32_t partition : {0, 1}) {
      set_mark(3, partition);
      partitions.push_back({partition, PartitionOffset::kNone});
    }
    set_.assign(partitions);
    settle();
    set_.seek_all_again();  // no group has assigned them
    ASSERT_EQ(to_place(), (Places{{0, 3}, {1, 3}}));
    reading_->resume(now_);
    ASSERT_THAT(to_place(), IsEmpty());
  }
  void TearDown() override {
    batch_.clear();  // a client does not end before its messages
  }

  using Delivered = std::multiset<std::pair<std::int32_t, std::int64_t>>;

  // One more in each.
  void produce_more() {
    for (const std::int32_t partition : {0, 1}) {
      cluster_.produce("events", partition);
      cluster_.flush();
    }
    ++end_;
  }
  void poll(Delivered& delivered) {
    consumer_->poll(batch_, 20ms, 1ms);
    for (const rd_kafka_message_t* message : batch_.messages()) {
      delivered.emplace(message->partition, message->offset);
    }
  }
  // What is delivered until each of these partitions was read to its end.
  Delivered read(const std::set<std::int32_t>& partitions) {
    Delivered delivered;
    const auto until = TopicReading::Clock::now() + kafka::kPatience;
    const auto at_end = [&](std::int32_t partition) {
      return delivered.contains({partition, end_ - 1});
    };
    while (!std::ranges::all_of(partitions, at_end) && TopicReading::Clock::now() < until) {
      poll(delivered);
    }
    return delivered;
  }
  // In a time in which a partition that is read delivers what it has.
  Delivered read_meanwhile() {
    Delivered delivered;
    for (int i = 0; i < 15; ++i) poll(delivered);
    return delivered;
  }
  [[nodiscard]] Delivered from(std::int64_t first, const std::set<std::int32_t>& partitions) const {
    Delivered all;
    for (const std::int32_t partition : partitions) {
      for (std::int64_t offset = first; offset < end_; ++offset) all.emplace(partition, offset);
    }
    return all;
  }

  std::int64_t end_ = kMessages;
  kafka::Cluster cluster_{kMessages, "events", 2};
  kafka::MessageBatch batch_{100};
  std::unique_ptr<kafka::Consumer> consumer_;
  std::unique_ptr<TopicReading> reading_;
};

TEST_F(TopicReadingTest, APartitionThatWaitsForItsDecoderIsReadAgainFromItsMessage) {
  EXPECT_EQ(read({0, 1}), from(3, {0, 1}));
  reading_->await_decoder(0, now_);
  EXPECT_TRUE(reading_->awaits_decoder(0));
  EXPECT_FALSE(reading_->awaits_decoder(1));
  // It is held although the wait is over already: that sets it back.
  reading_->hold({}, now_ + 1s);
  EXPECT_TRUE(set_.held(0));
  EXPECT_EQ(metrics_.waiting_partitions.value(), 1);
  produce_more();
  EXPECT_EQ(read({1}), from(kMessages, {1}));
  EXPECT_THAT(read_meanwhile(), IsEmpty());
  reading_->hold({}, now_ + 1s);
  EXPECT_FALSE(reading_->awaits_decoder(0));
  EXPECT_FALSE(set_.held(0));
  EXPECT_EQ(metrics_.waiting_partitions.value(), 0);
  reading_->resume(now_ + 1s);
  EXPECT_EQ(read({0}), from(3, {0}));
}

TEST_F(TopicReadingTest, AllArePausedAfterAWhileAndGoOnWhereTheyAre) {
  EXPECT_EQ(read({0, 1}), from(3, {0, 1}));
  EXPECT_FALSE(reading_->pause_if_due(now_));
  EXPECT_FALSE(reading_->pause_if_due(now_ + 2999ms));
  EXPECT_FALSE(reading_->paused());
  EXPECT_TRUE(reading_->pause_if_due(now_ + 3s));
  EXPECT_TRUE(reading_->pause_if_due(now_ + 4s));
  EXPECT_TRUE(reading_->paused());
  EXPECT_EQ(metrics_.pauses.value(), 1U);
  EXPECT_EQ(metrics_.paused_partitions.value(), 2);
  produce_more();
  EXPECT_THAT(read_meanwhile(), IsEmpty());
  // Nor is any of them missed.
  const LagBook::Offsets ends{{0, end_}, {1, end_}};
  reading_->set_drained(now_ + 4s);
  for (const auto later : {4s, 20s}) reading_->look_for_silence(ends, now_ + later);
  EXPECT_THAT(consumer_->partition_errors(), IsEmpty());
  reading_->resume(now_ + 5s);
  EXPECT_FALSE(reading_->paused());
  EXPECT_EQ(metrics_.paused_partitions.value(), 0);
  EXPECT_EQ(read({0, 1}), from(3, {0, 1}));
  EXPECT_FALSE(reading_->pause_if_due(now_ + 6s));
}

TEST_F(TopicReadingTest, APartitionThatWaitsForALetterStaysPausedWhenTheOthersGoOn) {
  EXPECT_EQ(read({0, 1}), from(3, {0, 1}));
  reading_->hold({0}, now_);
  EXPECT_EQ(metrics_.waiting_partitions.value(), 1);
  EXPECT_FALSE(reading_->pause_if_due(now_));
  EXPECT_TRUE(reading_->pause_if_due(now_ + 3s));
  reading_->resume(now_ + 3s);
  produce_more();
  EXPECT_EQ(read({1}), from(3, {1}));
  EXPECT_THAT(read_meanwhile(), IsEmpty());
  const std::vector<PartitionOffset> given_up{{0, PartitionOffset::kNone}};
  reading_->revoked(given_up);
  EXPECT_EQ(metrics_.waiting_partitions.value(), 0);
}

TEST_F(TopicReadingTest, ASilentPartitionIsNamedAndAllAreAssignedAgain) {
  EXPECT_EQ(read({0, 1}), from(3, {0, 1}));
  // Nothing of what was delivered has been taken: so it is awaited still.
  const LagBook::Offsets ends{{0, kMessages}, {1, 3}};
  reading_->look_for_silence(ends, now_);
  reading_->set_drained(now_ + 1s);
  reading_->look_for_silence(ends, now_ + 7s);
  ASSERT_TRUE(consumer_->partition_errors().contains(0));
  EXPECT_FALSE(consumer_->partition_errors().contains(1));
  EXPECT_THAT(consumer_->partition_errors().at(0).text, HasSubstr("has delivered no message"));
  EXPECT_THAT(to_place(), IsEmpty());
  reading_->look_for_silence(ends, now_ + 10s);
  EXPECT_EQ(to_place(), (Places{{0, 3}, {1, 3}}));
  reading_->resume(now_ + 10s);
  EXPECT_THAT(to_place(), IsEmpty());
  EXPECT_EQ(read({0, 1}), from(3, {0, 1}));
}

}  // namespace topic_reading_test
}  // namespace fcap::updater
