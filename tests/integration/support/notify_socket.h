#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/process.h"

namespace fcap::testing {

/// systemd's end of NOTIFY_SOCKET.
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
    std::chrono::steady_clock::time_point at;
    std::string text;  // lines of NAME=value
    [[nodiscard]] bool has(const std::string& line) const {
      return ("\n" + text + "\n").find("\n" + line + "\n") != std::string::npos;
    }
  };
  /// Collects what is said until this line comes; whether it has within a minute.
  bool hear(const std::string& line) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::minutes{1};
    while (std::chrono::steady_clock::now() < until) {
      pollfd waited{fd_, POLLIN, 0};
      if (::poll(&waited, 1, 100) > 0 && collect() && heard.back().has(line)) return true;
    }
    return false;
  }
  /// Collects what has been said already. The daemon waits while a dozen messages are left.
  void drain() {
    while (collect()) continue;
  }

  std::vector<Said> heard;

 private:
  bool collect() {
    std::string text(4096, '\0');
    const ssize_t got = ::recv(fd_, text.data(), text.size(), MSG_DONTWAIT);
    if (got <= 0) return false;
    text.resize(static_cast<std::size_t>(got));
    heard.push_back({std::chrono::steady_clock::now(), text});
    return true;
  }

  TemporaryDirectory directory_;
  int fd_;
};

}  // namespace fcap::testing
