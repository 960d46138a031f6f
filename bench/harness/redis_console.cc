#include "harness/redis_console.h"

#include <chrono>
#include <cmath>
#include <semaphore>
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

// Commands that go out together.
class Batch final : public redis::Request {
 public:
  Batch(std::string commands, std::uint32_t count, const RedisConsole::OnReply& on_reply)
      : on_reply_(on_reply) {
    wire = std::move(commands);
    command_count = count;
    deadline = steady_clock::now() + kReplyWait;
  }

  void on_reply(std::uint32_t index, const redis::Reply& reply) noexcept override {
    if (reply.kind == redis::Reply::Kind::kError) {
      failure = reply.text;
    } else if (on_reply_) {
      on_reply_(index, reply);
    }
  }
  void on_done(redis::TransportCode code) noexcept override {
    if (code != redis::TransportCode::kOk && failure.empty()) failure = "no answer";
    done.release();
  }

  std::string failure;
  std::binary_semaphore done{0};

 private:
  const RedisConsole::OnReply& on_reply_;
};

}  // namespace

PartRedis::PartRedis() {
  service_.start();
  pin(pid(), kRedisCore);
  pin(getpid(), kClientCore);
}

RedisConsole::RedisConsole(const std::string& address, int database) {
  options_.addresses = {address};
  options_.database = database;
  auto made = redis::Client::create(options_);
  if (!made.ok()) throw std::runtime_error(made.status().text());
  client_ = std::move(made).value();
  if (!testing::wait_until([this] { return client_->connected(); })) {
    throw std::runtime_error("no Redis at " + address + ": " + client_->last_error());
  }
}

void RedisConsole::run(std::string wire, std::uint32_t command_count, const OnReply& on_reply) {
  if (command_count == 0) return;
  Batch batch(std::move(wire), command_count, on_reply);
  client_->submit(batch);
  batch.done.acquire();
  if (!batch.failure.empty()) throw std::runtime_error("Redis: " + batch.failure);
}

std::string RedisConsole::call(std::initializer_list<std::string_view> words) {
  std::string wire;
  redis::append_command(wire, words);
  std::string answer;
  run(std::move(wire), 1, [&answer](std::uint32_t, const redis::Reply& reply) {
    const bool number = reply.kind == redis::Reply::Kind::kInteger;
    answer = number ? std::to_string(reply.integer) : std::string(reply.text);
  });
  return answer;
}

std::string RedisConsole::info(std::string_view section, std::string_view field) {
  const std::string text = "\n" + call({"INFO", section});
  const std::string wanted = "\n" + std::string(field) + ":";
  const std::size_t at = text.find(wanted);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + wanted.size();
  return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

void RedisConsole::finish_rehashing() {
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
