#include "harness/redis_console.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <thread>
#include <utility>

#include <unistd.h>

namespace fcap::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kReplyWait{60};
constexpr std::chrono::milliseconds kMemoryPoll{250};
constexpr int kMemoryPolls = 40;
// Buffers of connections come and go.
constexpr double kMemoryNoiseBytes = 16'384;

class Batch final : public redis::Request {
 public:
  Batch(std::string commands, std::uint32_t count, const RedisConsole::OnReply& on_reply)
      : handler_(on_reply) {
    wire = std::move(commands);
    command_count = count;
    deadline = steady_clock::now() + kReplyWait;
  }

  void run(redis::Client& client) {
    client.submit(*this);
    done_.wait(false);
    if (!failure_.empty()) throw std::runtime_error("Redis: " + failure_);
  }

  void on_reply(std::uint32_t index, const redis::Reply& reply) noexcept override {
    if (reply.kind == redis::Reply::Kind::kError) {
      failure_ = reply.text;
    } else if (handler_) {
      handler_(index, reply);
    }
  }

  void on_done(redis::TransportCode code) noexcept override {
    if (code != redis::TransportCode::kOk && failure_.empty()) failure_ = "no answer";
    done_ = true;
    done_.notify_one();
  }

 private:
  const RedisConsole::OnReply& handler_;
  std::string failure_;
  std::atomic<bool> done_{false};
};

}  // namespace

PartRedis::PartRedis() {
  service_.start();
  pin(pid(), kRedisCore);
  pin(getpid(), kClientCore);
}

RedisConsole::RedisConsole(const PartRedis& redis, int database) : redis_(redis) {
  options_.addresses = {redis.address()};
  options_.database = database;
  auto made = redis::Client::create(options_);
  if (!made.ok()) throw std::runtime_error(made.status().text());
  client_ = std::move(made).value();
  if (!testing::wait_until([this] { return client_->connected(); })) {
    throw std::runtime_error("no Redis at " + redis.address() + ": " + client_->last_error());
  }
}

void RedisConsole::run(std::string wire, std::uint32_t command_count, const OnReply& on_reply) {
  if (command_count == 0) return;
  Batch(std::move(wire), command_count, on_reply).run(*client_);
}

RedisConsole::Answer RedisConsole::call(std::initializer_list<std::string_view> words) {
  std::string wire;
  redis::append_command(wire, words);
  Answer answer;
  run(std::move(wire), 1, [&](std::uint32_t, const redis::Reply& reply) {
    answer = {reply.integer, std::string(reply.text)};
  });
  return answer;
}

std::string RedisConsole::info(std::string_view section, std::string_view field) {
  const std::string text = "\n" + call({"INFO", section}).text;
  const std::string wanted = "\n" + std::string(field) + ":";
  const std::size_t at = text.find(wanted);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + wanted.size();
  return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

void RedisConsole::finish_rehashing() {
  // Each look-up moves a bucket of a table that is growing, and of the table of expiries.
  constexpr std::int64_t kLookupsATime = 10'000;
  for (std::int64_t left = call({"DBSIZE"}).integer; left > 0; left -= kLookupsATime) {
    std::string wire;
    for (std::int64_t i = 0; i < kLookupsATime; ++i) {
      redis::append_command(wire, {"EXISTS", "no-such-key"});
    }
    run(std::move(wire), kLookupsATime);
  }
}

double RedisConsole::settled_memory_bytes() {
  finish_rehashing();
  double after = number("memory", "used_memory");
  for (int poll = 0; poll < kMemoryPolls; ++poll) {
    std::this_thread::sleep_for(kMemoryPoll);
    const double before = std::exchange(after, number("memory", "used_memory"));
    if (std::abs(after - before) <= kMemoryNoiseBytes) break;
  }
  return after;
}

}  // namespace fcap::bench
