#include "updater/watch/stall_book.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fcap::updater {
namespace stall_book_test {

using std::chrono::seconds;
using Position = StallBook::PartitionPosition;
using Wait = StallBook::Wait;

class AStallBook : public ::testing::Test {
 protected:
  void pass(seconds time, std::vector<Position> positions, bool joined = true) {
    now_ += time;
    book_.look(joined, positions, commits_wait_, now_);
  }
  [[nodiscard]] std::size_t stalls() const { return book_.stalls(now_).size(); }
  // All that stands still waits for the same.
  std::string tell(Wait wait, const std::string& why) {
    std::vector<StallBook::StallReason> reasons;
    for (const StallBook::Stall& stall : book_.stalls(now_))
      reasons.push_back({stall, {wait, why}});
    return book_.tell(reasons, now_, [this](LogLevel level, std::string_view line) {
      log_.append(level == LogLevel::kWarning ? "! " : "  ").append(line).append("\n");
    });
  }

  StallBook book_;
  StallBook::TimePoint now_{seconds{1'000}};
  std::optional<StallBook::TimePoint> commits_wait_;
  std::string log_;
};

TEST_F(AStallBook, APartitionWithMessagesThatDoesNotMoveForTenSecondsIsStalled) {
  pass(seconds{0}, {{0, 5, 3}, {1, 5, 0}, {2, 5, 3}});
  pass(seconds{9}, {{0, 5, 3}, {1, 5, 0}, {2, 6, 2}});
  EXPECT_EQ(stalls(), 0U);
  pass(seconds{1}, {{0, 5, 4}, {1, 5, 0}, {2, 6, 2}});
  ASSERT_EQ(stalls(), 1U);
  EXPECT_EQ(book_.stalls(now_).front().partition, 0);
  EXPECT_EQ(tell(Wait::kMessages, "Kafka delivers nothing"),
            "partition 0: no progress for 10 s although 4 messages wait: Kafka delivers nothing");
  pass(seconds{1}, {{0, 9, 0}, {1, 5, 0}, {2, 7, 1}});
  EXPECT_EQ(stalls(), 0U);
}

TEST_F(AStallBook, MessagesThatComeAfterAQuietTimeMayWaitForTenSeconds) {
  pass(seconds{0}, {{0, 5, 0}});
  pass(seconds{100}, {{0, 5, 0}});
  pass(seconds{1}, {{0, 5, 1}});
  EXPECT_EQ(stalls(), 0U);
  pass(seconds{10}, {{0, 5, 1}});
  EXPECT_EQ(stalls(), 1U);
}

TEST_F(AStallBook, WhatKafkaDoesNotAnswerIsAsItWas) {
  pass(seconds{0}, {{0, 5, 7}, {1, 5, 0}});
  pass(seconds{10}, {{0, 5, {}}, {1, 5, {}}});
  ASSERT_EQ(stalls(), 1U);
  EXPECT_EQ(book_.stalls(now_).front().messages, 7);
}

TEST_F(AStallBook, APartitionWithoutAPositionWaitsWhateverItHolds) {
  pass(seconds{0}, {{0, {}, {}}, {1, {}, 0}});
  pass(seconds{12}, {{0, {}, {}}, {1, {}, 0}});
  EXPECT_EQ(tell(Wait::kMark, "Redis does not answer"),
            "partition 0 and 1 more: no progress for 12 s and it is not known how many messages "
            "wait: Redis does not answer");
}

TEST_F(AStallBook, AnUnknownPositionIsNoProgress) {
  pass(seconds{0}, {{0, 5, 3}, {1, 5, 0}});
  pass(seconds{6}, {{0, {}, {}}, {1, {}, {}}});
  pass(seconds{4}, {{0, 5, 3}, {1, {}, 0}});
  ASSERT_EQ(stalls(), 1U);
  EXPECT_EQ(book_.stalls(now_).front().partition, 0);
  pass(seconds{6}, {{0, 6, 2}, {1, {}, 0}});
  ASSERT_EQ(stalls(), 1U);
  EXPECT_EQ(book_.stalls(now_).front().partition, 1);
}

TEST_F(AStallBook, AMemberWithoutAnAssignmentIsStalled) {
  pass(seconds{0}, {}, false);
  pass(seconds{10}, {}, false);
  EXPECT_EQ(tell(Wait::kAssignment, "the coordinator does not answer"),
            "no partition has been assigned for 10 s: the coordinator does not answer");
  // The group may have more members than partitions.
  pass(seconds{1}, {});
  EXPECT_EQ(tell(Wait::kAssignment, ""), "");
  pass(seconds{100}, {});
  EXPECT_EQ(stalls(), 0U);
}

TEST_F(AStallBook, CommitsThatAreNotAnsweredAreAStall) {
  commits_wait_ = now_;
  pass(seconds{9}, {{0, 5, 0}});
  EXPECT_EQ(stalls(), 0U);
  pass(seconds{1}, {{0, 5, 0}});
  EXPECT_EQ(tell(Wait::kCommit, "the coordinator is loading"),
            "Kafka has answered no commit for 10 s: the coordinator is loading");
}

TEST_F(AStallBook, TheLogSaysOnceWhatIsWaitedForAndWhenItIsOver) {
  pass(seconds{0}, {{0, 5, 3}});
  for (int i = 0; i < 20; ++i) {
    pass(seconds{1}, {{0, 5, 3}});
    tell(Wait::kRedis, "Redis does not accept events");
  }
  EXPECT_EQ(log_,
            "! partition 0: no progress for 10 s although 3 messages wait: Redis does not accept "
            "events\n");
  log_.clear();
  tell(Wait::kMessages, "Kafka delivers nothing");
  tell(Wait::kRedis, "Redis does not accept events");
  EXPECT_EQ(log_,
            "! partition 0: no progress for 20 s although 3 messages wait: Kafka delivers "
            "nothing\n");
  log_.clear();
  for (int i = 0; i < 2; ++i) {
    pass(seconds{1}, {{0, 8, 0}});
    tell(Wait::kRedis, "");
  }
  EXPECT_EQ(log_, "  progress again, after 21 s\n");
}

}  // namespace stall_book_test
}  // namespace fcap::updater
