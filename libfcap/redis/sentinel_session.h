#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/redis_options.h>
#include <fcap/status.h>

#include "redis/connection.h"
#include "redis/credentials.h"
#include "redis/reply.h"
#include "redis/resolver.h"

namespace fcap::redis {

/// What a Sentinel says to SENTINEL GET-MASTER-ADDR-BY-NAME: the master's address, or why there is
/// none, naming the option to change. Free of I/O.
[[nodiscard]] Result<Address> read_master_address(const Reply& reply, std::string_view master);

/// A connection to one Sentinel, for a thread that may wait. It is kept between questions, and
/// closed by whatever goes wrong.
///
/// Thread safety: belongs to one thread.
class SentinelSession {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  /// What the next connection uses.
  using CredentialsNow = std::function<Credentials::Current()>;

  /// Waits end at once when `stop_fd` is readable.
  SentinelSession(const RedisOptions& options, CredentialsNow credentials, int stop_fd)
      : options_(options), credentials_(std::move(credentials)), stop_fd_(stop_fd) {}

  [[nodiscard]] bool is_open() const noexcept { return connection_.fd() >= 0; }
  /// Connects to the first of `endpoints` that takes a connection. By TLS, its certificate must be
  /// for `host`.
  [[nodiscard]] Status open(const Endpoints& endpoints, const std::string& host, TimePoint until);
  /// Asks the Sentinel, which is connected, where the master is.
  [[nodiscard]] Result<Address> ask_master(TimePoint until);
  /// Asks the Sentinel, which has just answered ask_master(), where the replicas are.
  [[nodiscard]] Result<std::vector<Address>> ask_replicas(TimePoint until);
  void close() noexcept { connection_.close(); }
  /// For a forked child.
  void abandon() noexcept { connection_.abandon(); }

 private:
  [[nodiscard]] Status connect(const Endpoint& endpoint, const std::string& host, TimePoint until);
  /// Until the socket is readable, or also writable if `output` is set.
  [[nodiscard]] Status wait(bool output, TimePoint until);
  /// `take_last` gets the last reply; refusals among those before it are noted in error_.
  [[nodiscard]] Status exchange(TimePoint until, std::size_t replies_expected,
                                const std::function<void(const Reply&)>& take_last);

  const RedisOptions& options_;
  const CredentialsNow credentials_;
  const int stop_fd_;
  bool greeted_ = false;
  Connection connection_{std::size_t{64} << 10U};
  std::string error_;
};

}  // namespace fcap::redis
