// What Redis alone takes of the updater's commands: sends the bytes that redis_tee has written down
// to Redis as fast as it reads them, from memory, and counts the replies. Prints one JSON object.
#include <charconv>
#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "redis/resp_parser.h"
#include "updater/cpu_time.h"
#include "updater/socket.h"

namespace {

using namespace fcap;
using std::chrono::steady_clock;

struct Flags {
  int redis_port = 6379;
  int redis_pid = 0;
  std::string file;
  std::uint64_t events = 0;
};

std::string read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  if (bytes.empty()) throw std::runtime_error(name + " is empty");
  return bytes;
}

/// The number behind the type at `at`; moves `at` behind the line.
std::size_t header(std::string_view bytes, std::size_t& at, char type) {
  const std::size_t end = bytes.find('\r', at);
  std::size_t number = 0;
  if (bytes[at] != type || end == std::string_view::npos ||
      std::from_chars(bytes.data() + at + 1, bytes.data() + end, number).ec != std::errc{}) {
    throw std::runtime_error("what was written down is not a sequence of commands");
  }
  at = end + 2;
  return number;
}

/// Cuts what may have been sent in part, and counts the commands.
std::uint64_t count_commands(std::string& bytes) {
  std::uint64_t commands = 0;
  std::size_t at = 0;
  std::size_t whole = 0;
  while (at < bytes.size()) {
    for (std::size_t words = header(bytes, at, '*'); words > 0 && at < bytes.size(); --words) {
      at += header(bytes, at, '$') + 2;
    }
    if (at > bytes.size()) break;
    whole = at;
    ++commands;
  }
  bytes.resize(whole);
  return commands;
}

void receive_replies(const bench::Socket& socket, std::uint64_t expected) {
  redis::RespParser parser;
  std::string held;
  std::string bytes;
  for (std::uint64_t seen = 0; seen < expected;) {
    socket.receive(bytes);
    if (bytes.empty()) throw std::runtime_error("Redis has closed the connection");
    held += bytes;
    std::size_t at = 0;
    while (parser.parse(std::string_view(held).substr(at)) == redis::RespParser::Outcome::kReply) {
      at += parser.length_bytes();
      ++seen;
    }
    held.erase(0, at);
  }
}

int measure(const Flags& flags) {
  std::string commands = read_file(flags.file);
  const std::uint64_t count = count_commands(commands);
  const bench::Socket socket = bench::Socket::connect(flags.redis_port);
  const double redis_before = bench::cpu_seconds(flags.redis_pid);
  const double own_before = bench::cpu_seconds(getpid());
  const auto started = steady_clock::now();
  std::thread sender([&] { socket.send(commands); });
  receive_replies(socket, count);
  const std::chrono::duration<double> took = steady_clock::now() - started;
  const double own = bench::cpu_seconds(getpid()) - own_before;
  sender.join();
  const auto events = static_cast<double>(flags.events);
  fmt::print(R"({{"events_per_second": {:.0f}, "client_cpu_us": {:.3f}, "redis_cpu_us": {:.3f}, )"
             R"("commands": {}, "commands_per_event": {:.3f}, "bytes_per_event": {:.1f}}})"
             "\n",
             events / took.count(), 1e6 * own / events,
             1e6 * (bench::cpu_seconds(flags.redis_pid) - redis_before) / events, count,
             static_cast<double>(count) / events, static_cast<double>(commands.size()) / events);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Sends commands that were written down, as fast as Redis takes them.");
  app.add_option("--redis-port", flags.redis_port, "Redis' port")->capture_default_str();
  app.add_option("--redis-pid", flags.redis_pid, "Redis' process")->required();
  app.add_option("--file", flags.file, "What redis_tee has written")->required();
  app.add_option("--events", flags.events, "Events that the commands are for")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    return measure(flags);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "redis_limit: %s\n", failure.what());
    return 1;
  }
}
