#include "updater/pipeline/event_clocks.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"

namespace fcap::updater {
namespace event_clocks_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class EventClocksTest : public ::testing::Test {
 protected:
  // This machine's clock goes on meanwhile, but not for hours.
  static auto hours_from_now(Instant at) {
    return std::chrono::round<std::chrono::hours>(at - base::wall_now()).count();
  }
  static std::int64_t ms_from_now(std::chrono::hours away) {
    return to_ms(base::wall_now() + away);
  }

  std::optional<std::chrono::milliseconds> redis_ahead_;
  std::vector<std::string> lines_;
  EventClocks clocks_{[this] { return redis_ahead_; }, 5min,
                      [this](LogLevel, std::string_view text) { lines_.emplace_back(text); }};
};

TEST_F(EventClocksTest, OneWrongClockNeitherRejectsNorDrops) {
  EXPECT_EQ(hours_from_now(clocks_.now().latest), 0);
  EXPECT_EQ(hours_from_now(clocks_.now().earliest), 0);
  clocks_.note_message(-1, false);
  EXPECT_EQ(hours_from_now(clocks_.now().earliest), 0);
  // What producers say is no reason to take an event from the future.
  clocks_.note_message(ms_from_now(5h), false);
  EXPECT_EQ(hours_from_now(clocks_.now().latest), 0);
  clocks_.note_message(ms_from_now(7h), true);
  EXPECT_EQ(hours_from_now(clocks_.now().latest), 7);
  EXPECT_EQ(hours_from_now(clocks_.now().earliest), 0);
  redis_ahead_ = -3h;
  EXPECT_EQ(hours_from_now(clocks_.now().earliest), -3);
  EXPECT_EQ(hours_from_now(clocks_.redis_now()), -3);
}

TEST_F(EventClocksTest, AMessageOfTheBrokersClockMayBeTheOldest) {
  clocks_.note_message(ms_from_now(-4h), true);
  EXPECT_EQ(hours_from_now(clocks_.now().earliest), -4);
  EXPECT_EQ(hours_from_now(clocks_.now().latest), 0);
}

TEST_F(EventClocksTest, RedisClockIsLookedAtOnceAndThenOnDemand) {
  redis_ahead_ = 2h;
  EXPECT_EQ(hours_from_now(clocks_.now().latest), 2);
  redis_ahead_ = 4h;
  EXPECT_EQ(hours_from_now(clocks_.now().latest), 2);
  EXPECT_FALSE(clocks_.compare());
  EXPECT_EQ(hours_from_now(clocks_.now().latest), 4);
  // What was known last counts.
  redis_ahead_.reset();
  EXPECT_FALSE(clocks_.compare());
  EXPECT_EQ(hours_from_now(clocks_.now().latest), 4);
}

TEST_F(EventClocksTest, AllEventsAreBeforeTheLatestThatIsAllowed) {
  redis_ahead_ = 2h;
  const Instant after = clocks_.after_all_events();
  EXPECT_GT(after, clocks_.now().latest + 4min);
  EXPECT_EQ(to_ms(after) % 1000, 0);
}

TEST_F(EventClocksTest, ADifferenceIsTroubleUntilTheClocksAgree) {
  redis_ahead_ = 5min;
  EXPECT_FALSE(clocks_.compare());
  EXPECT_EQ(clocks_.trouble(), "");
  redis_ahead_ = -301s;
  EXPECT_FALSE(clocks_.compare());
  EXPECT_THAT(clocks_.trouble(), HasSubstr("is -301 s ahead"));
  redis_ahead_ = -302s;
  EXPECT_FALSE(clocks_.compare());
  EXPECT_THAT(clocks_.trouble(), HasSubstr("is -302 s ahead"));
  redis_ahead_ = 0s;
  EXPECT_FALSE(clocks_.compare());
  EXPECT_EQ(clocks_.trouble(), "");
  EXPECT_THAT(lines_, ElementsAre(HasSubstr("is -301 s ahead"), HasSubstr("agree again")));
}

TEST_F(EventClocksTest, RecordsMayHaveExpiredOnlyUnderAClockThatWasFarAhead) {
  redis_ahead_ = 1h;
  EXPECT_FALSE(clocks_.compare());
  redis_ahead_ = 0s;
  EXPECT_FALSE(clocks_.compare());
  redis_ahead_ = -2h;
  EXPECT_FALSE(clocks_.compare());
  redis_ahead_ = 0s;
  EXPECT_FALSE(clocks_.compare());
  redis_ahead_ = 61min;
  EXPECT_FALSE(clocks_.compare());
  // It must agree first: what is read again would expire too early as well.
  redis_ahead_ = 30min;
  EXPECT_FALSE(clocks_.compare());
  redis_ahead_ = 0s;
  EXPECT_TRUE(clocks_.compare());
  EXPECT_FALSE(clocks_.compare());
}

}  // namespace event_clocks_test
}  // namespace fcap::updater
