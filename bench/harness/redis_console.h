#pragma once

#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <semaphore>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "redis/client.h"
#include "support/process.h"

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
  /// Waits for all replies, if there are commands, and empties it; how many they were. Throws
  /// std::runtime_error if one is an error.
  std::uint32_t wait() {
    if (command_count > 0) done_.acquire();
    if (!failure_.empty()) throw std::runtime_error("Redis: " + failure_);
    wire.clear();
    return std::exchange(command_count, 0);
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
  explicit RedisConsole(const std::string& address, int database = 0)
      : RedisConsole(RedisOptions{.addresses = {address}, .database = database}) {}
  /// Of a cluster, it asks the master of this slot.
  explicit RedisConsole(RedisOptions options, std::uint16_t slot = 0)
      : options_(std::move(options)), slot_(slot) {
    auto made = redis::Client::create(options_);
    if (!made.ok()) throw std::runtime_error(made.status().text());
    client_ = std::move(made).value();
    if (!testing::wait_until([this] { return client_->connected(); })) {
      throw std::runtime_error("no Redis: " + client_->last_error());
    }
  }

  /// What a command answers; a number as text.
  std::string call(std::initializer_list<std::string_view> words) {
    std::string wire;
    redis::append_command(wire, words);
    std::string answer;
    run(std::move(wire), 1, [&answer](std::uint32_t, const redis::Reply& reply) {
      const bool number = reply.kind == redis::Reply::Kind::kInteger;
      answer = number ? std::to_string(reply.integer) : std::string(reply.text);
    });
    return answer;
  }

  /// Sends commands together and waits for all replies. An error reply throws.
  void run(std::string wire, std::uint32_t command_count, const OnReply& on_reply = {}) {
    if (command_count == 0) return;
    CommandBatch batch(on_reply);
    batch.slot = slot_;
    batch.wire = std::move(wire);
    batch.command_count = command_count;
    batch.send(*client_);
    batch.wait();
  }

  /// SCRIPT LOAD.
  void load(std::span<const std::string_view> scripts) {
    for (const std::string_view script : scripts) call({"SCRIPT", "LOAD", script});
  }

  /// One field of INFO, such as "used_memory" of "memory"; empty when there is none.
  std::string info(std::string_view section, std::string_view field) {
    const std::string text = call({"INFO", section});
    const std::string wanted = fmt::format("\n{}:", field);
    const std::size_t at = text.find(wanted);
    if (at == std::string::npos) return {};
    const std::size_t begin = at + wanted.size();
    return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
  }
  double number(std::string_view section, std::string_view field) {
    return std::stod(info(section, field));
  }
  /// used_memory, once it no longer changes: a growing hash table is there twice for a while.
  double settled_memory_bytes() {
    constexpr std::chrono::milliseconds kPoll{250};
    constexpr int kPolls = 40;
    constexpr double kNoiseBytes = 16'384;  // buffers of connections come and go
    finish_rehashing();
    double after = number("memory", "used_memory");
    for (int poll = 0; poll < kPolls; ++poll) {
      std::this_thread::sleep_for(kPoll);
      const double before = std::exchange(after, number("memory", "used_memory"));
      if (std::abs(after - before) <= kNoiseBytes) break;
    }
    return after;
  }

  /// The server's.
  [[nodiscard]] int pid() { return std::stoi(info("server", "process_id")); }
  /// How the console reaches it.
  [[nodiscard]] const RedisOptions& options() const noexcept { return options_; }
  [[nodiscard]] redis::Client& client() noexcept { return *client_; }

 private:
  void finish_rehashing() {
    // Each look-up moves a bucket of a table that is growing, and of the table of expiries.
    constexpr std::int64_t kLookupsATime = 10'000;
    for (std::int64_t left = std::stoll(call({"DBSIZE"})); left > 0; left -= kLookupsATime) {
      std::string wire;
      for (std::int64_t i = 0; i < kLookupsATime; ++i) {
        redis::append_command(wire, {"EXISTS", "no-such-key"});
      }
      run(std::move(wire), kLookupsATime);
    }
  }

  RedisOptions options_;
  std::uint16_t slot_;
  std::unique_ptr<redis::Client> client_;
};

}  // namespace fcap::bench
