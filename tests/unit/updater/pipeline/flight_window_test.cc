#include "updater/pipeline/flight_window.h"

#include <gtest/gtest.h>

namespace fcap::updater {
namespace flight_window_test {

using namespace std::chrono_literals;
using Clock = FlightWindow::Clock;

constexpr std::size_t kMax = 80'000;

TEST(FlightWindowTest, AFastServerGetsEverythingSoon) {
  FlightWindow window(500ms, kMax);
  Clock::time_point now{100s};
  for (int i = 0; i < 20; ++i, now += 5ms) window.came_back(now - 5ms, now);
  EXPECT_EQ(window.writes(), kMax);
}

// A server that takes `rate` writes per second, always given the whole window.
std::size_t settled_window(std::size_t rate) {
  FlightWindow window(500ms, kMax);
  Clock::time_point now{100s};
  for (int i = 0; i < 200; ++i) {
    const auto sent = now;
    now += std::chrono::microseconds(window.writes() * 1'000'000 / rate);
    window.came_back(sent, now);
  }
  return window.writes();
}

TEST(FlightWindowTest, ASlowServerGetsWhatItDoesWithinTheWait) {
  for (const std::size_t rate : {2'000U, 10'000U, 30'000U, 100'000U}) {
    EXPECT_LE(settled_window(rate), rate / 2) << rate;
    EXPECT_GE(settled_window(rate), rate / 8) << rate;
  }
}

TEST(FlightWindowTest, OneSlowMomentShrinksItOnce) {
  FlightWindow window(500ms, kMax);
  Clock::time_point now{100s};
  for (int i = 0; i < 20; ++i, now += 5ms) window.came_back(now - 5ms, now);
  const auto sent = now;
  now += 1s;
  for (int i = 0; i < 4; ++i) window.came_back(sent, now);
  EXPECT_EQ(window.writes(), kMax / 2);
}

TEST(FlightWindowTest, NeverShrinksToNothingAndStartsSmallAgain) {
  FlightWindow window(500ms, kMax);
  Clock::time_point now{100s};
  for (int i = 0; i < 50; ++i, now += 10s) window.timed_out(now - 1s, now);
  EXPECT_EQ(window.writes(), FlightWindow::kWritesMin);
  window.restart(now);
  EXPECT_EQ(window.writes(), FlightWindow::kWritesAtStart);
}

}  // namespace flight_window_test
}  // namespace fcap::updater
