#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "redis/client.h"

namespace fcap::bench {

/// Asks a Redis and waits: for setting benches up and for reading the server's own numbers. Every
/// failure is a std::runtime_error, since a bench without its server has nothing to say.
///
/// Not thread-safe.
class RedisConsole {
 public:
  using OnReply = std::function<void(std::uint32_t index, const redis::Reply& reply)>;

  explicit RedisConsole(std::string address, int database = 0);

  /// An answer that outlives its reply.
  struct Answer {
    std::int64_t integer = 0;
    std::string text;
  };
  Answer call(std::initializer_list<std::string_view> words);

  /// Sends commands together and waits for all replies. An error reply throws.
  void run(std::string wire, std::uint32_t command_count, const OnReply& on_reply = {});

  /// One field of INFO, such as "used_memory" of "memory"; empty when there is none.
  std::string info(std::string_view section, std::string_view field);
  /// CPU time that the server has used so far.
  double cpu_seconds();
  /// Once it no longer changes: a growing hash table is there twice for a while.
  std::uint64_t settled_memory_bytes();

  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] int database() const noexcept { return database_; }
  [[nodiscard]] redis::Client& client() noexcept { return *client_; }

 private:
  void finish_rehashing();

  std::string address_;
  int database_;
  std::unique_ptr<redis::Client> client_;
};

}  // namespace fcap::bench
