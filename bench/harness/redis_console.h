#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "redis/client.h"

namespace fcap::bench {

using OnReply = std::function<void(std::uint32_t index, const redis::Reply& reply)>;

/// Commands that go out together: append them to `wire`, count them in `command_count`. Can be used
/// again and again. Not thread-safe.
class CommandBatch final : public redis::Request {
 public:
  explicit CommandBatch(OnReply on_reply = {}) : on_reply_(std::move(on_reply)) {
    command_count = 0;
  }

  void send(redis::Client& client) {
    deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    client.submit(*this);
  }
  /// Waits for all replies, and empties it. Throws std::runtime_error if one is an error.
  void wait() {
    done_.acquire();
    if (!failure_.empty()) throw std::runtime_error("Redis: " + failure_);
    wire.clear();
    command_count = 0;
  }

  void on_reply(std::uint32_t index, const redis::Reply& reply) noexcept override {
    if (reply.kind == redis::Reply::Kind::kError) {
      failure_ = reply.text;
    } else if (on_reply_) {
      on_reply_(index, reply);
    }
  }
  void on_done(redis::TransportCode code) noexcept override {
    if (code != redis::TransportCode::kOk && failure_.empty()) failure_ = "no answer";
    done_.release();
  }

 private:
  const OnReply on_reply_;
  std::string failure_;
  std::binary_semaphore done_{0};
};

/// Asks a Redis and waits: for setting benches up and for reading the server's own numbers. Every
/// failure is a std::runtime_error, since a bench without its server has nothing to say.
///
/// Not thread-safe.
class RedisConsole {
 public:
  explicit RedisConsole(const std::string& address, int database = 0);
  /// Of a cluster, it asks the master of this slot.
  explicit RedisConsole(RedisOptions options, std::uint16_t slot = 0);

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
  std::uint16_t slot_;
  std::unique_ptr<redis::Client> client_;
};

}  // namespace fcap::bench
