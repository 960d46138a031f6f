#include "redis/shared_state.h"

#include <gtest/gtest.h>

namespace fcap::redis {
namespace shared_state_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the code

class SharedClock : public ::testing::Test {
 protected:
  ~SharedClock() override { base::wall_clock_ahead_ms = 0; }
  // To the second, because time passes between two readings of the clocks.
  std::optional<std::chrono::seconds> difference() const {
    const auto exact = shared_.clock_difference();
    return exact ? std::optional(std::chrono::round<std::chrono::seconds>(*exact)) : std::nullopt;
  }

  void take(const std::string& place, std::optional<std::chrono::milliseconds> difference,
            SharedState::SteadyTime at) {
    ServerFacts facts;
    facts.clock_difference = difference;
    shared_.take_clock(place, facts, at);
  }

  SharedState shared_{RedisOptions{}};
  const SharedState::SteadyTime now_ = std::chrono::steady_clock::now();
};

TEST_F(SharedClock, IsUnknownUntilAServerHasSaidIt) {
  EXPECT_EQ(difference(), std::nullopt);
  take("a", 3s, now_);
  EXPECT_EQ(difference(), 3s);
  take("a", std::nullopt, now_);
  EXPECT_EQ(difference(), std::nullopt);
}

TEST_F(SharedClock, OfSeveralServersTheOneThatIsFurthestOffCounts) {
  take("a", 3s, now_);
  take("b", -12s, now_);
  take("a", 3s, now_ + 60s);
  EXPECT_EQ(difference(), -12s);
  take("b", 1s, now_ + 60s);
  EXPECT_EQ(difference(), 1s);
}

TEST_F(SharedClock, AServerThatIsGoneIsForgotten) {
  take("a", 3s, now_);
  take("b", -12s, now_);
  take("a", 3s, now_ + 10min);
  EXPECT_EQ(difference(), 3s);
  EXPECT_EQ(shared_.facts.clock_difference, 3s);
}

// Nothing tells of it, and the server is asked once a minute.
TEST_F(SharedClock, AStepOfThisMachinesClockShowsAtOnce) {
  take("a", 0s, now_);
  base::wall_clock_ahead_ms = std::chrono::milliseconds{1h}.count();
  EXPECT_EQ(difference(), -1h);
}

}  // namespace shared_state_test
}  // namespace fcap::redis
