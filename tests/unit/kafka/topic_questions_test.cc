#include "kafka/topic_questions.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/mock_cluster.h"

namespace fcap::kafka {
namespace topic_questions_test {

class ReadFrom : public ::testing::Test {
 protected:
  std::set<std::int32_t> read(const Offsets& from, std::int64_t last) {
    ConnectionOptions connection;
    connection.brokers = cluster_.brokers();
    auto questions = TopicQuestions::open(connection, "g", patience_);
    EXPECT_TRUE(questions.ok()) << questions.status().text();
    const auto take = [&](const TopicQuestions::ReadMessage& read) {
      offsets_.push_back(read.offset);
      return read.offset >= last;
    };
    return questions.value()->read_from("events", from, take, [] { return false; });
  }

  Cluster cluster_{10};
  std::chrono::milliseconds patience_ = kPatience;
  std::vector<std::int64_t> offsets_;
};

TEST_F(ReadFrom, EndsWithTheLastMessageThatIsWanted) {
  EXPECT_EQ(read({{0, 5}}, 7), (std::set<std::int32_t>{0}));
  EXPECT_EQ(offsets_, (std::vector<std::int64_t>{5, 6, 7}));
}

TEST_F(ReadFrom, EndsAtTheEndOfTheLog) {
  EXPECT_EQ(read({{0, 8}}, 100), (std::set<std::int32_t>{0}));
  EXPECT_EQ(offsets_, (std::vector<std::int64_t>{8, 9}));
}

// Nobody must take what has not come for what is not there.
TEST_F(ReadFrom, NamesNoPartitionWhoseMessagesDoNotComeInTime) {
  cluster_.freeze_broker(1);
  patience_ = std::chrono::milliseconds{200};
  EXPECT_TRUE(read({{0, 5}}, 7).empty());
  EXPECT_TRUE(offsets_.empty());
}

}  // namespace topic_questions_test
}  // namespace fcap::kafka
