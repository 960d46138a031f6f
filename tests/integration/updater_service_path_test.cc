// The daemon as systemd sees it: what it says on NOTIFY_SOCKET, and when. It needs no server for
// that, so neither Kafka nor Redis is there.
#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/process.h"
#include "test_paths.h"

namespace fcap {
namespace {

using std::chrono::milliseconds;
using testing::Process;
using Clock = std::chrono::steady_clock;

// systemd's end of NOTIFY_SOCKET.
class NotifySocket {
 public:
  NotifySocket() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path().copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_, generic, sizeof(address)), 0) << path();
  }
  ~NotifySocket() { ::close(fd_); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  [[nodiscard]] std::string path() const { return directory_.path() / "notify"; }

  struct Said {
    Clock::time_point at;
    std::string text;  // lines of NAME=value
    [[nodiscard]] bool has(const std::string& line) const {
      return ("\n" + text + "\n").find("\n" + line + "\n") != std::string::npos;
    }
  };
  // Collects what is said until this line comes; whether it has within a minute.
  bool hear(const std::string& line) {
    const auto until = Clock::now() + std::chrono::minutes{1};
    while (Clock::now() < until) {
      pollfd waited{fd_, POLLIN, 0};
      if (::poll(&waited, 1, 100) <= 0) continue;
      std::string text(4096, '\0');
      const ssize_t got = ::recv(fd_, text.data(), text.size(), 0);
      if (got <= 0) continue;
      text.resize(static_cast<std::size_t>(got));
      heard.push_back({Clock::now(), text});
      if (heard.back().has(line)) return true;
    }
    return false;
  }

  std::vector<Said> heard;

 private:
  testing::TemporaryDirectory directory_;
  int fd_;
};

TEST(UpdaterService, TellsSystemdThatItIsReadyAliveAndStopping) {
  constexpr milliseconds kWatchdog{12'000};
  constexpr int kBeats = 3;
  NotifySocket systemd;
  Process updater({FCAP_UPDATER_BINARY, "run", "--kafka.brokers", "127.0.0.1:1",
                   "--redis.addresses", "127.0.0.1:1", "--http.enabled", "false"},
                  {.environment = {"NOTIFY_SOCKET=" + systemd.path(),
                                   "WATCHDOG_USEC=" + std::to_string(kWatchdog.count() * 1000)},
                   .input = {}});

  ASSERT_TRUE(systemd.hear("READY=1")) << updater.errors();
  EXPECT_EQ(systemd.heard.size(), 1U) << "nothing comes before it is ready";
  Clock::time_point last = systemd.heard.back().at;
  for (int i = 0; i < kBeats; ++i) {
    ASSERT_TRUE(systemd.hear("WATCHDOG=1")) << updater.errors();
    EXPECT_LT(systemd.heard.back().at - last, kWatchdog / 2) << "beat " << i;
    EXPECT_NE(systemd.heard.back().text.find("STATUS="), std::string::npos);
    last = systemd.heard.back().at;
  }
  const std::size_t before = systemd.heard.size();
  updater.send_signal(SIGTERM);
  ASSERT_TRUE(systemd.hear("STOPPING=1")) << updater.errors();
  EXPECT_LE(systemd.heard.size(), before + 2) << "said at once, not when it has drained";
  EXPECT_TRUE(updater.wait_for(milliseconds{60'000})) << updater.errors();
  EXPECT_EQ(updater.exit_code(), 0) << updater.errors();
}

}  // namespace
}  // namespace fcap
