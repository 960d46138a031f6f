#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "harness/processes.h"
#include "redis/client.h"
#include "support/process.h"
#include "support/service.h"

namespace fcap::bench {

/// A Redis of the part's own that has a core to itself: from now on this process has another.
class PartRedis {
 public:
  PartRedis();
  [[nodiscard]] const std::string& address() const { return service_.value("address"); }
  [[nodiscard]] int pid() const { return std::stoi(service_.value("pid")); }

 private:
  testing::TemporaryDirectory directory_;
  testing::Service service_{"redis", directory_.path()};
};

/// Asks a Redis and waits: for setting benches up and for reading the server's own numbers. Every
/// failure is a std::runtime_error, since a bench without its server has nothing to say.
///
/// Not thread-safe.
class RedisConsole {
 public:
  using OnReply = std::function<void(std::uint32_t index, const redis::Reply& reply)>;

  explicit RedisConsole(const std::string& address, int database = 0);

  /// What a command answers; a number as text.
  std::string call(std::initializer_list<std::string_view> words);

  /// Sends commands together and waits for all replies. An error reply throws.
  void run(std::string wire, std::uint32_t command_count, const OnReply& on_reply = {});

  /// SCRIPT LOAD.
  void load(std::span<const std::string_view> scripts) {
    for (const std::string_view script : scripts) call({"SCRIPT", "LOAD", script});
  }

  /// One field of INFO, such as "used_memory" of "memory"; empty when there is none.
  std::string info(std::string_view section, std::string_view field);
  double number(std::string_view section, std::string_view field) {
    return std::stod(info(section, field));
  }
  /// used_memory, once it no longer changes: a growing hash table is there twice for a while.
  double settled_memory_bytes();

  /// The server's.
  [[nodiscard]] int pid() { return std::stoi(info("server", "process_id")); }
  /// How the console reaches it.
  [[nodiscard]] const RedisOptions& options() const noexcept { return options_; }
  [[nodiscard]] redis::Client& client() noexcept { return *client_; }

 private:
  void finish_rehashing();

  RedisOptions options_;
  std::unique_ptr<redis::Client> client_;
};

}  // namespace fcap::bench
