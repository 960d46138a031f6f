#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fcap/status.h>

#include "redis/connection.h"
#include "redis/credentials.h"
#include "redis/reply.h"
#include "redis/resolver.h"

namespace fcap::redis {

/// Gives the credentials as they are now.
using CredentialsNow = std::function<Credentials::Current()>;

/// A connection to one server, a Sentinel or a node of a cluster, for a thread that may wait. It is
/// closed by whatever goes wrong.
///
/// Thread safety: belongs to one thread.
class NodeSession {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Command = std::initializer_list<std::string_view>;
  /// Gets each command's reply, with the command's index.
  using Take = std::function<void(std::size_t, const Reply&)>;

  /// Who connects, and how.
  struct Account {
    std::string user;      ///< empty: the default user
    std::string password;  ///< empty: no AUTH is sent
    std::shared_ptr<tls::Context> tls;
  };
  using AccountNow = std::function<Account()>;

  /// `account` is called for each connection. Waits end at once when `stop_fd` is readable.
  NodeSession(AccountNow account, int stop_fd) : account_(std::move(account)), stop_fd_(stop_fd) {}

  [[nodiscard]] bool is_open() const noexcept { return connection_.fd() >= 0; }
  /// Connects to the first of `endpoints` that takes a connection. By TLS, its certificate must be
  /// for `host`.
  [[nodiscard]] Status open(const Endpoints& endpoints, const std::string& host, TimePoint until);
  /// Sends the commands together, after AUTH if they are the connection's first. An AUTH that is
  /// refused has the code kRefused and the server's own words.
  [[nodiscard]] Status ask(std::initializer_list<Command> commands, TimePoint until,
                           const Take& take);
  void close() noexcept { connection_.close(); }
  /// For a forked child.
  void abandon() noexcept { connection_.abandon(); }

 private:
  [[nodiscard]] Status connect(const Endpoint& endpoint, const std::string& host, TimePoint until);
  /// Until the socket is readable, or also writable if `output` is set.
  [[nodiscard]] Status wait(bool output, TimePoint until);
  [[nodiscard]] Status exchange(TimePoint until, std::size_t replies_expected,
                                const std::function<void(const Reply&)>& take);

  const AccountNow account_;
  const int stop_fd_;
  bool greeted_ = false;
  Connection connection_{std::size_t{64} << 10U};
};

}  // namespace fcap::redis
