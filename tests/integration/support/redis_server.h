#pragma once

#include <string>
#include <vector>

#include "support/process.h"
#include "support/service.h"

namespace fcap::testing {

/// A private Redis, and a simple way to talk to it that shares no code with libfcap's client.
///
///     if (!RedisServer::available()) GTEST_SKIP() << "redis-server is missing";
///     RedisServer redis({"--maxmemory", "10mb"});
///     redis.command({"SET", "key", "value"});
class RedisServer {
 public:
  /// Whether this machine has redis-server and redis-cli.
  static bool available() {
    return present(has_program("redis-server") && has_program("redis-cli"),
                   "redis-server or redis-cli is missing");
  }

  explicit RedisServer(const std::vector<std::string>& server_arguments = {});

  /// "127.0.0.1:port".
  [[nodiscard]] const std::string& address() const { return service_.value("address"); }
  [[nodiscard]] int port() const { return std::stoi(service_.value("port")); }
  [[nodiscard]] int pid() const { return service_.pid(); }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_.path(); }

  void start() { service_.start(); }
  void stop() { service_.stop(); }
  void kill() { service_.kill(); }
  void freeze() { service_.freeze(); }
  void thaw() { service_.thaw(); }

  /// Runs one command and gives what redis-cli prints, without the last line's end; error replies
  /// begin with their code ("ERR …", "WRONGTYPE …"), nil is "". `options` are redis-cli's.
  std::string command(const std::vector<std::string>& words,
                      const std::vector<std::string>& options = {}) const;
  /// The same for a reply that is a number.
  long long number(const std::vector<std::string>& words) const {
    return std::stoll(command(words));
  }

 private:
  TemporaryDirectory directory_;
  Service service_;
};

}  // namespace fcap::testing
