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
#include "support/or_throw.h"
#include "support/process.h"

namespace fcap::bench {

/// Adds a command to those that a request has already.
inline void append(redis::Request& request, std::initializer_list<std::string_view> words) {
  redis::append_command(request.wire, words);
  ++request.command_count;
}

using OnReply = std::function<void(std::uint32_t index, const redis::Reply& reply)>;

/// Commands that go out together. Can be used again and again. Not thread-safe.
class CommandBatch final : public redis::Request {
 public:
  explicit CommandBatch(OnReply on_reply = {}) : on_reply_(std::move(on_reply)) {
    command_count = 0;
  }

  void send(redis::Client& client) {
    if (command_count == 0) return;
    deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    client.submit(*this);
  }
  /// Waits for all replies and empties it; how many commands there were. Throws std::runtime_error
  /// if a reply is an error.
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
  /// In a cluster it asks the master of this slot.
  explicit RedisConsole(RedisOptions options, std::uint16_t slot = 0)
      : options_(std::move(options)),
        slot_(slot),
        client_(testing::or_throw(redis::Client::create(options_))) {
    if (!testing::wait_until([this] { return client_->connected(); })) {
      throw std::runtime_error("no Redis: " + client_->last_error());
    }
  }

  /// Sends commands and waits for all replies. An error reply throws.
  void run(CommandBatch& batch) {
    batch.slot = slot_;
    batch.send(*client_);
    batch.wait();
  }
  /// What one command answers; a number as text.
  std::string call(std::initializer_list<std::string_view> words) {
    std::string answer;
    CommandBatch batch([&answer](std::uint32_t, const redis::Reply& reply) {
      const bool number = reply.kind == redis::Reply::Kind::kInteger;
      answer = number ? std::to_string(reply.integer) : std::string(reply.text);
    });
    append(batch, words);
    run(batch);
    return answer;
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

  /// How the console reaches it.
  [[nodiscard]] const RedisOptions& options() const noexcept { return options_; }
  [[nodiscard]] redis::Client& client() noexcept { return *client_; }

 private:
  // Each look-up moves a bucket of a table that is growing, and of the table of expiries.
  void finish_rehashing() {
    constexpr std::int64_t kLookupsATime = 10'000;
    CommandBatch batch;
    for (std::int64_t left = std::stoll(call({"DBSIZE"})); left > 0; left -= kLookupsATime) {
      for (std::int64_t i = 0; i < kLookupsATime; ++i) append(batch, {"EXISTS", "no-such-key"});
      run(batch);
    }
  }

  RedisOptions options_;
  std::uint16_t slot_;
  std::unique_ptr<redis::Client> client_;
};

}  // namespace fcap::bench
