// The daemon as systemd sees it: what it says on NOTIFY_SOCKET, and when. It needs no server for
// that, so neither Kafka nor Redis is there.
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/notify_socket.h"
#include "support/process.h"
#include "test_paths.h"

namespace fcap {
namespace service_path_test {

using std::chrono::milliseconds;
using testing::NotifySocket;
using testing::Process;
using Clock = std::chrono::steady_clock;

TEST(UpdaterService, TellsSystemdThatItIsReadyAliveAndStopping) {
  // Short, so that many are heard: their mean does not depend on one moment of a busy machine.
  constexpr milliseconds kWatchdog{1'000};
  constexpr int kBeats = 40;
  NotifySocket systemd;
  Process updater({FCAP_UPDATER_BINARY, "run", "--kafka.brokers", "127.0.0.1:1",
                   "--redis.addresses", "127.0.0.1:1", "--http.enabled", "false"},
                  {.environment = {"NOTIFY_SOCKET=" + systemd.path(),
                                   "WATCHDOG_USEC=" + std::to_string(kWatchdog.count() * 1000)},
                   .input = {}});

  ASSERT_TRUE(systemd.hear("READY=1")) << updater.errors();
  EXPECT_EQ(systemd.heard.size(), 1U) << "nothing comes before it is ready";
  const Clock::time_point began = systemd.heard.back().at;
  for (int i = 0; i < kBeats; ++i) {
    ASSERT_TRUE(systemd.hear("WATCHDOG=1")) << updater.errors();
    EXPECT_NE(systemd.heard.back().text.find("STATUS="), std::string::npos);
  }
  // Without a watchdog a beat comes every two seconds.
  EXPECT_LT(systemd.heard.back().at - began, kBeats * kWatchdog);
  systemd.drain();
  const std::size_t before = systemd.heard.size();
  updater.send_signal(SIGTERM);
  ASSERT_TRUE(systemd.hear("STOPPING=1")) << updater.errors();
  EXPECT_LE(systemd.heard.size(), before + 2) << "said at once, not when it has drained";
  EXPECT_TRUE(updater.wait_for(milliseconds{60'000})) << updater.errors();
  EXPECT_EQ(updater.exit_code(), 0) << updater.errors();
}

}  // namespace service_path_test
}  // namespace fcap
