#include "harness/redis_console.h"

#include <cmath>
#include <thread>

#include <fmt/format.h>

#include "support/process.h"

namespace fcap::bench {
namespace {

constexpr std::chrono::milliseconds kMemoryPoll{250};
constexpr int kMemoryPolls = 40;
// Buffers of connections come and go.
constexpr double kMemoryNoiseBytes = 16'384;

}  // namespace

RedisConsole::RedisConsole(const std::string& address, int database)
    : RedisConsole(RedisOptions{.addresses = {address}, .database = database}) {}

RedisConsole::RedisConsole(RedisOptions options, std::uint16_t slot)
    : options_(std::move(options)), slot_(slot) {
  auto made = redis::Client::create(options_);
  if (!made.ok()) throw std::runtime_error(made.status().text());
  client_ = std::move(made).value();
  if (!testing::wait_until([this] { return client_->connected(); })) {
    throw std::runtime_error("no Redis: " + client_->last_error());
  }
}

void RedisConsole::run(std::string wire, std::uint32_t command_count, const OnReply& on_reply) {
  if (command_count == 0) return;
  CommandBatch batch(on_reply);
  batch.slot = slot_;
  batch.wire = std::move(wire);
  batch.command_count = command_count;
  batch.send(*client_);
  batch.wait();
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
  const std::string text = call({"INFO", section});
  const std::string wanted = fmt::format("\n{}:", field);
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
