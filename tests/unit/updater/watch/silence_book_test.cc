#include "updater/watch/silence_book.h"

#include <gtest/gtest.h>

namespace fcap::updater {
namespace silence_book_test {

using std::chrono::seconds;
using Reading = SilenceBook::Reading;
using Partitions = std::set<std::int32_t>;

class ASilenceBook : public ::testing::Test {
 protected:
  void pass(seconds time, std::vector<Reading> reading) {
    now_ += time;
    book_.set_reading(reading, now_);
  }
  [[nodiscard]] Partitions silent() const { return book_.silent(now_); }

  SilenceBook book_;
  SilenceBook::TimePoint now_{seconds{1'000}};
};

TEST_F(ASilenceBook, APartitionWhoseMessagesDoNotComeIsSilentAfterSeconds) {
  pass(seconds{0}, {{0, 10, 20}, {1, 10, 10}});
  pass(seconds{1}, {{0, 10, 20}, {1, 10, 10}});
  book_.set_drained(now_);
  pass(seconds{4}, {{0, 10, 20}, {1, 10, 10}});
  EXPECT_EQ(silent(), Partitions{});
  pass(seconds{1}, {{0, 10, 30}, {1, 10, 10}});
  EXPECT_EQ(silent(), Partitions{0});
  pass(seconds{1}, {{0, 11, 30}, {1, 10, 10}});
  EXPECT_EQ(silent(), Partitions{});
}

TEST_F(ASilenceBook, WhatWasFetchedOfOthersMayStandInFrontOfIt) {
  book_.set_drained(now_);
  pass(seconds{1}, {{0, 10, 20}});
  pass(seconds{50}, {{0, 10, 20}});
  EXPECT_EQ(silent(), Partitions{});
  pass(seconds{20}, {{0, 10, 20}});
  EXPECT_EQ(silent(), Partitions{0});
}

TEST_F(ASilenceBook, APartitionThatIsNotReadMayBeSilent) {
  pass(seconds{0}, {{0, 10, 20}});
  pass(seconds{100}, {});
  pass(seconds{1}, {{0, 10, 20}});
  EXPECT_EQ(silent(), Partitions{});
}

TEST_F(ASilenceBook, TheWaitForARemedyDoublesUpToTenMinutes) {
  std::vector<int> at;
  pass(seconds{0}, {{0, 10, 20}});
  for (int second = 1; second <= 2'000; ++second) {
    pass(seconds{1}, {{0, 10, 20}});
    book_.set_drained(now_);
    if (book_.take_remedy(now_)) at.push_back(second);
  }
  EXPECT_EQ(at, (std::vector<int>{10, 20, 40, 80, 160, 320, 640, 1'240, 1'840}));
}

TEST_F(ASilenceBook, WhileOthersKeepComingTheWaitDoublesToo) {
  std::vector<int> at;
  pass(seconds{0}, {{0, 10, 20}});
  for (int second = 1; second <= 120; ++second) {
    pass(seconds{1}, {{0, 10, 20}});
    if (book_.take_remedy(now_)) at.push_back(second);
  }
  EXPECT_EQ(at, (std::vector<int>{60, 70, 90}));
}

}  // namespace silence_book_test
}  // namespace fcap::updater
