#include "updater/pipeline/rejection_watch.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcap::updater {
namespace rejection_watch_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RejectionWatchTest : public ::testing::Test {
 protected:
  void read(std::uint64_t messages, std::uint64_t rejected,
            events::Rejection reason = events::Rejection::kNotJson) {
    for (std::uint64_t i = 0; i < rejected; ++i) {
      watch_.rejected({3, offset_++}, {reason, {}}, now_);
    }
    watch_.taken(messages, now_);
  }

  std::vector<std::string> lines_;
  RejectionWatch watch_{{.share_max = 0.9, .messages_min = 100},
                        [this](LogLevel, std::string_view text) { lines_.emplace_back(text); }};
  RejectionWatch::Clock::time_point now_{1000s};
  std::int64_t offset_ = 7;
};

TEST_F(RejectionWatchTest, NearlyEverythingRejectedIsTroubleWithASample) {
  read(100, 90);
  EXPECT_EQ(watch_.trouble(now_), "");
  read(1, 1);
  EXPECT_THAT(watch_.trouble(now_), HasSubstr("91 of 101"));
  EXPECT_THAT(watch_.trouble(now_), HasSubstr("partition 3, offset 7: rejected as not_json"));
  read(100, 0);
  EXPECT_EQ(watch_.trouble(now_), "");
}

TEST_F(RejectionWatchTest, AFewMessagesSayNothing) {
  read(99, 99);
  EXPECT_EQ(watch_.trouble(now_), "");
}

TEST_F(RejectionWatchTest, OnlyTheLastMinuteCounts) {
  read(1000, 1000);
  now_ += 49s;
  EXPECT_NE(watch_.trouble(now_), "");
  now_ += 12s;
  EXPECT_EQ(watch_.trouble(now_), "");
  read(1000, 1000);
  now_ += 24h;
  EXPECT_EQ(watch_.trouble(now_), "");
}

TEST_F(RejectionWatchTest, EachReasonHasALinePerMinute) {
  read(3, 3);
  read(1, 1, events::Rejection::kInFuture);
  EXPECT_THAT(lines_, ElementsAre("partition 3, offset 7: rejected as not_json",
                                  "partition 3, offset 10: rejected as in_future"));
  now_ += 60s;
  read(1, 1);
  ASSERT_EQ(lines_.size(), 3U);
  EXPECT_EQ(lines_[2],
            "partition 3, offset 11: rejected as not_json; 2 more for this reason since the last "
            "such line");
}

}  // namespace rejection_watch_test
}  // namespace fcap::updater
