#include "kafka/leader_moves.h"

#include <vector>

#include <gtest/gtest.h>

#include "kafka/consumer.h"
#include "kafka/range_reader.h"
#include "tests/support/mock_cluster.h"

namespace fcap::kafka {
namespace leader_moves_test {

using std::chrono::milliseconds;

constexpr int kMessages = 10;
constexpr auto kMoved = RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;

// A topic of one partition, whose leader is another broker by now, as the client finds out.
class LeaderMoves : public ::testing::Test {
 protected:
  static std::unique_ptr<Consumer> consumer_of(const Cluster& cluster) {
    ConsumerOptions options;
    options.connection.brokers = cluster.brokers();
    options.topic = "events";
    auto made = Consumer::create(options, {}, {});
    EXPECT_TRUE(made.ok()) << made.status().text();
    return std::move(made).value();
  }

  Cluster cluster_{kMessages};
  std::unique_ptr<Consumer> consumer_ = consumer_of(cluster_);
};

TEST_F(LeaderMoves, TheEndsOfAPartitionAreAskedForAgain) {
  cluster_.refuse_list_offsets(3, kMoved);
  const auto ends = consumer_->watermarks(0, kPatience);
  ASSERT_TRUE(ends.ok()) << ends.status().text();
  EXPECT_EQ(ends.value().high, kMessages);
}

TEST_F(LeaderMoves, OffsetsByTimeAreAskedForAgain) {
  cluster_.refuse_list_offsets(3, kMoved);
  std::vector<PartitionOffset> at{{0}};
  // The imitation knows no times, but an end's name in place of one.
  const Status status = consumer_->offsets_at(instant_from_ms(kLogBeginning), at, kPatience);
  EXPECT_TRUE(status.ok()) << status.text();
  EXPECT_EQ(at.at(0).offset, 0);
}

TEST_F(LeaderMoves, AWholeTopicIsAskedForAgain) {
  ConnectionOptions connection;
  connection.brokers = cluster_.brokers();
  auto reader = RangeReader::open(connection, "events", kPatience);
  ASSERT_TRUE(reader.ok()) << reader.status().text();
  cluster_.refuse_list_offsets(3, kMoved);
  const auto spans = reader.value()->whole_topic();
  ASSERT_TRUE(spans.ok()) << spans.status().text();
  EXPECT_EQ(spans.value().at(0).to, kMessages);
}

TEST(AskLeaders, EndsWithTheLastAnswerWhenTheTimeIsOver) {
  int asked = 0;
  EXPECT_EQ(ask_leaders(milliseconds{3000},
                        [&asked](milliseconds left) {
                          EXPECT_GT(left.count(), 0);
                          ++asked;
                          return kMoved;
                        }),
            kMoved);
  EXPECT_GT(asked, 1);
}

TEST(AskLeaders, AsksOnceWhereAnotherAnswerWillNotCome) {
  int asked = 0;
  EXPECT_EQ(ask_leaders(kPatience,
                        [&asked](milliseconds) {
                          ++asked;
                          return RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED;
                        }),
            RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
  EXPECT_EQ(asked, 1);
}

}  // namespace leader_moves_test
}  // namespace fcap::kafka
