#include "updater/commands.h"

#include <charconv>
#include <csignal>
#include <future>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <thread>

#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>

#include "redis/resp_parser.h"
#include "updater/meter.h"

namespace fcap::bench {
namespace {

using asio::ip::tcp;

constexpr std::size_t kReadBytes = std::size_t{256} << 10U;

tcp::socket connected(asio::io_context& context, const std::string& address) {
  tcp::socket socket(context);
  const std::size_t colon = address.rfind(':');
  asio::connect(
      socket, tcp::resolver(context).resolve(address.substr(0, colon), address.substr(colon + 1)));
  socket.set_option(tcp::no_delay(true));
  return socket;
}

/// Passes on what `from` sends until one of them has closed, hastily or not.
void pass_on(tcp::socket& from, tcp::socket& to, std::string* recorded) {
  std::string bytes(kReadBytes, '\0');
  std::error_code ended;
  while (!ended) {
    const std::size_t got = from.read_some(asio::buffer(bytes), ended);
    if (recorded != nullptr) recorded->append(bytes, 0, got);
    if (!ended) asio::write(to, asio::buffer(bytes, got), ended);
  }
}

/// Stands between a client and Redis, for one connection, until either side closes it.
void record(tcp::acceptor& listener, const std::string& redis_address, std::string& recorded) {
  asio::io_context context;
  tcp::socket client = listener.accept(context);
  client.set_option(tcp::no_delay(true));
  tcp::socket redis = connected(context, redis_address);
  std::jthread answers([&] { pass_on(redis, client, nullptr); });
  pass_on(client, redis, &recorded);
  std::error_code gone;
  redis.shutdown(tcp::socket::shutdown_both, gone);
}

/// The number behind the type at `at`; moves `at` behind the line.
std::size_t header(std::string_view bytes, std::size_t& at, char type) {
  const std::size_t end = bytes.find('\r', at);
  std::size_t number = 0;
  if (bytes[at] != type || end == std::string_view::npos ||
      std::from_chars(bytes.data() + at + 1, bytes.data() + end, number).ec != std::errc{}) {
    throw std::runtime_error("what was recorded is not a sequence of commands");
  }
  at = end + 2;
  return number;
}

/// How many whole commands there are, and in `bytes` how long they are.
std::uint64_t count_commands(std::string_view& bytes) {
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
  bytes = bytes.substr(0, whole);
  return commands;
}

void receive_replies(tcp::socket& socket, std::uint64_t expected) {
  redis::RespParser parser;
  std::string held;
  std::string bytes(kReadBytes, '\0');
  for (std::uint64_t seen = 0; seen < expected;) {
    held.append(bytes, 0, socket.read_some(asio::buffer(bytes)));
    std::size_t at = 0;
    while (parser.parse(std::string_view(held).substr(at)) == redis::RespParser::Outcome::kReply) {
      at += parser.length_bytes();
      ++seen;
    }
    held.erase(0, at);
  }
}

}  // namespace

std::string record_commands(const Servers& servers, const std::string& topic,
                            std::uint64_t events) {
  asio::io_context context;
  tcp::acceptor listener(context, {asio::ip::address_v4::loopback(), 0});
  std::string recorded;
  auto between = std::async(std::launch::async, [&] { record(listener, servers.redis, recorded); });
  const auto port = listener.local_endpoint().port();
  RunningUpdater updater(servers, topic, "127.0.0.1:" + std::to_string(port));
  (void)updater.drain(events);
  updater.end(SIGKILL);
  between.get();
  return recorded;
}

Numbers measure_commands(const Servers& servers, const std::string& commands,
                         std::uint64_t events) {
  std::string_view whole = commands;
  const std::uint64_t count = count_commands(whole);
  asio::io_context context;
  tcp::socket socket = connected(context, servers.redis);
  const Meter meter(servers);
  std::jthread sender([&] { asio::write(socket, asio::buffer(whole)); });
  receive_replies(socket, count);
  Numbers numbers = meter.per_event(events);
  numbers.erase("broker_cpu_us");
  numbers["commands_per_event"] = static_cast<double>(count) / static_cast<double>(events);
  numbers["bytes_per_event"] = static_cast<double>(whole.size()) / static_cast<double>(events);
  return numbers;
}

}  // namespace fcap::bench
