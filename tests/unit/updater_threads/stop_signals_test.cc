#include "updater/process/stop_signals.h"

#include <csignal>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "updater/process/process_log.h"

namespace fcap::updater {
namespace stop_signals_test {

using namespace std::chrono_literals;

constexpr int kStopped = 42;

void wait_for_the_request(const StopSignals& signals) {
  while (!signals.token().stop_requested()) std::this_thread::sleep_for(1ms);
}

// Each in a process of its own: the dispositions stay as they were in this one.
class StopSignalsDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(StopSignalsDeathTest, ASignalThatArrivesTwiceIsOneWish) {
  EXPECT_EXIT(
      {
        configure_logging({});
        const StopSignals signals(1h);
        kill(getpid(), SIGTERM);
        wait_for_the_request(signals);
        kill(getpid(), SIGTERM);
        kill(getpid(), SIGINT);
        std::this_thread::sleep_for(200ms);  // enough for it to end at once, if it were to
        _exit(kStopped);
      },
      ::testing::ExitedWithCode(kStopped), "stopping");
}

TEST_F(StopSignalsDeathTest, AHangUpIsAnOrderlyStop) {
  EXPECT_EXIT(
      {
        configure_logging({});
        const StopSignals signals(1h);
        kill(getpid(), SIGHUP);
        wait_for_the_request(signals);
        _exit(kStopped);
      },
      ::testing::ExitedWithCode(kStopped), "stopping");
}

TEST_F(StopSignalsDeathTest, AHangUpThatIsIgnoredStaysIgnored) {
  EXPECT_EXIT(
      {
        configure_logging({});
        std::signal(SIGHUP, SIG_IGN);
        const StopSignals signals(1h);
        kill(getpid(), SIGHUP);
        std::this_thread::sleep_for(100ms);
        _exit(signals.token().stop_requested() ? 1 : kStopped);
      },
      ::testing::ExitedWithCode(kStopped), "");
}

TEST_F(StopSignalsDeathTest, ALaterSignalEndsTheProcessAtOnce) {
  EXPECT_EXIT(
      {
        configure_logging({});
        const StopSignals signals(1ms);
        kill(getpid(), SIGINT);
        wait_for_the_request(signals);
        std::this_thread::sleep_for(20ms);
        kill(getpid(), SIGTERM);
        std::this_thread::sleep_for(1min);
      },
      ::testing::ExitedWithCode(1), "a second signal: ending at once");
}

}  // namespace stop_signals_test
}  // namespace fcap::updater
