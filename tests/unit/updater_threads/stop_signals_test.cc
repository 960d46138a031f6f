#include "updater/process/stop_signals.h"

#include <csignal>
#include <initializer_list>
#include <optional>
#include <stop_token>
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

// Ends `signals` after it has acted on all of these signals: what its thread has taken is no longer
// pending, and it acts on that before it looks whether it is to end.
void end_after(std::initializer_list<int> sent, std::optional<StopSignals>& signals) {
  for (const int signal : sent) {
    for (;;) {
      sigset_t pending;
      sigpending(&pending);
      if (sigismember(&pending, signal) == 0) break;
      std::this_thread::sleep_for(1ms);
    }
  }
  signals.reset();
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
        std::optional<StopSignals> signals(1h);
        kill(getpid(), SIGTERM);
        wait_for_the_request(*signals);
        kill(getpid(), SIGTERM);
        kill(getpid(), SIGINT);
        end_after({SIGTERM, SIGINT}, signals);
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
        std::optional<StopSignals> signals(1h);
        const std::stop_token stop = signals->token();
        kill(getpid(), SIGHUP);
        end_after({SIGHUP}, signals);
        _exit(stop.stop_requested() ? 1 : kStopped);
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
        std::this_thread::sleep_for(2ms);  // so that it is a later one
        kill(getpid(), SIGTERM);
        std::this_thread::sleep_for(1min);
      },
      ::testing::ExitedWithCode(1), "a second signal: ending at once");
}

}  // namespace stop_signals_test
}  // namespace fcap::updater
