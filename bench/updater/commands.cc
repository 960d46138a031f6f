#include <csignal>
#include <future>
#include <system_error>
#include <thread>

#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <unistd.h>

#include "updater/measuring.h"

namespace fcap::bench {
namespace {

using asio::ip::tcp;

tcp::socket connected(asio::io_context& context, const std::string& address) {
  tcp::socket socket(context);
  const std::size_t colon = address.rfind(':');
  asio::connect(
      socket, tcp::resolver(context).resolve(address.substr(0, colon), address.substr(colon + 1)));
  socket.set_option(tcp::no_delay(true));
  return socket;
}

// Gives `take` what arrives, until the connection has ended, hastily or not.
template <typename Take>
void read_all(tcp::socket& from, Take take) {
  std::string bytes(std::size_t{256} << 10U, '\0');
  std::error_code ended;
  while (!ended) take(std::string_view(bytes.data(), from.read_some(asio::buffer(bytes), ended)));
}

void pass_on(tcp::socket& to, std::string_view bytes) {
  std::error_code gone;
  asio::write(to, asio::buffer(bytes), gone);
}

// Stands between a client and Redis, for one connection, until either side closes it.
std::string record(tcp::acceptor& listener, const std::string& redis_address) {
  asio::io_context context;
  tcp::socket client = listener.accept(context);
  client.set_option(tcp::no_delay(true));
  tcp::socket redis = connected(context, redis_address);
  std::jthread answers(
      [&] { read_all(redis, [&](std::string_view bytes) { pass_on(client, bytes); }); });
  std::string recorded;
  read_all(client, [&](std::string_view bytes) {
    recorded.append(bytes);
    pass_on(redis, bytes);
  });
  std::error_code gone;
  redis.shutdown(tcp::socket::shutdown_both, gone);
  return recorded;
}

}  // namespace

std::string record_commands(const Servers& servers, const std::string& topic,
                            std::uint64_t events) {
  asio::io_context context;
  tcp::acceptor listener(context, {asio::ip::address_v4::loopback(), 0});
  auto recorded =
      std::async(std::launch::async, [&] { return record(listener, servers.redis.address()); });
  const auto port = listener.local_endpoint().port();
  RunningUpdater updater(servers, topic, "127.0.0.1:" + std::to_string(port));
  (void)updater.drain(events);
  updater.end(SIGKILL);
  return recorded.get();
}

Numbers measure_commands(const Servers& servers, const std::string& commands,
                         std::uint64_t events) {
  asio::io_context context;
  tcp::socket socket = connected(context, servers.redis.address());
  const Meter meter({{"client_cpu_us", getpid()}, {"redis_cpu_us", servers.redis.pid()}});
  std::jthread sender([&] {
    asio::write(socket, asio::buffer(commands));
    socket.shutdown(tcp::socket::shutdown_send);
  });
  // Redis closes the connection once it has executed what came before its end.
  read_all(socket, [](std::string_view) {});
  return meter.per("events", static_cast<double>(events));
}

}  // namespace fcap::bench
