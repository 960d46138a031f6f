#include "harness/redis_console.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <utility>

namespace fcap::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectWait{5};
constexpr std::chrono::seconds kReplyWait{60};
constexpr std::chrono::milliseconds kMemoryPoll{250};
constexpr int kMemoryPolls = 40;
// Buffers of connections come and go.
constexpr std::uint64_t kMemoryNoiseBytes = 16'384;

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

RedisConsole::RedisConsole(std::string address, int database)
    : address_(std::move(address)), database_(database) {
  RedisOptions options;
  options.addresses = {address_};
  options.database = database_;
  auto made = redis::Client::create(std::move(options));
  if (!made.ok()) throw std::runtime_error(made.status().text());
  client_ = std::move(made).value();
  const auto until = steady_clock::now() + kConnectWait;
  while (!client_->connected()) {
    if (steady_clock::now() > until) {
      throw std::runtime_error("no Redis at " + address_ + ": " + client_->last_error());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
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
    answer.integer = reply.integer;
    answer.text = reply.text;
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

double RedisConsole::cpu_seconds() {
  return std::stod(info("cpu", "used_cpu_user")) + std::stod(info("cpu", "used_cpu_sys"));
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

std::uint64_t RedisConsole::settled_memory_bytes() {
  finish_rehashing();
  const auto used_memory = [this] { return std::stoull(info("memory", "used_memory")); };
  std::uint64_t before = used_memory();
  for (int poll = 0; poll < kMemoryPolls; ++poll) {
    std::this_thread::sleep_for(kMemoryPoll);
    const std::uint64_t after = used_memory();
    const bool settled = std::max(before, after) - std::min(before, after) <= kMemoryNoiseBytes;
    before = after;
    if (settled) break;
  }
  return before;
}

}  // namespace fcap::bench
