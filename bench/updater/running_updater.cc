// The real updater, and the commands that it sends.
#include <csignal>
#include <future>
#include <optional>
#include <regex>
#include <stdexcept>
#include <thread>

#include <asio/ip/tcp.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "test_paths.h"
#include "updater/measuring.h"

namespace fcap::bench {
namespace {

using asio::ip::tcp;

constexpr std::chrono::minutes kDrain{5};
// Each request for the metrics costs the updater about a fifth of a millisecond.
constexpr std::chrono::milliseconds kBetweenSamples{25};

tcp::socket connected(asio::io_context& context, int port) {
  tcp::socket socket(context);
  socket.connect({asio::ip::address_v4::loopback(), static_cast<asio::ip::port_type>(port)});
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
std::string record(tcp::acceptor& listener, int redis_port) {
  asio::io_context context;
  tcp::socket client = listener.accept(context);
  client.set_option(tcp::no_delay(true));
  tcp::socket redis = connected(context, redis_port);
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

Servers::Servers(const testing::RedisServer& part_redis) : redis(part_redis) {
  for (const char* topic : {kFilledTopic, kLiveTopic, kSlowTopic}) kafka->create_topic(topic, 4);
}

Meter Servers::meter(int client_pid) const {
  return Meter({{"client_cpu_us", client_pid},
                {"redis_cpu_us", redis.pid()},
                {"broker_cpu_us", kafka->pid()}});
}

std::vector<std::string> updater_command(const Servers& servers, const std::string& command,
                                         const std::string& topic, const std::string& redis,
                                         std::uint64_t gap_messages_min) {
  static int groups = 0;
  return {FCAP_UPDATER_BINARY,
          command,
          "--kafka.brokers=" + servers.kafka->brokers(),
          "--kafka.topic=" + topic,
          "--kafka.group_id=bench-" + std::to_string(++groups),
          "--kafka.dead_letter_topic=",
          "--redis.addresses=" + redis,
          "--pipeline.gap_messages_min=" + std::to_string(gap_messages_min),
          "--compaction.drain_timeout=60s",
          "--http.port=0"};
}

RunningUpdater::RunningUpdater(const Servers& servers, const std::string& topic,
                               const std::string& redis, std::uint64_t gap_messages_min)
    : servers_(servers), process_(updater_command(servers, "run", topic, redis, gap_messages_min)) {
  static const std::regex serving("serving http://[^/]*:([0-9]+)/metrics");
  const bool serves = testing::wait_until([this] {
    const std::string log = process_.errors();
    std::smatch found;
    if (std::regex_search(log, found, serving)) port_ = std::stoi(found[1]);
    return port_ != 0;
  });
  if (!serves) throw std::runtime_error("fcap-updater: " + process_.errors());
  pin(process_.pid(), kClientCore);
}

double RunningUpdater::metric(const std::string& name) const {
  asio::io_context context;
  tcp::socket socket = connected(context, port_);
  pass_on(socket, "GET /metrics HTTP/1.0\r\n\r\n");
  std::string page;
  read_all(socket, [&](std::string_view bytes) { page += bytes; });
  const std::size_t at = page.find("\n" + name + " ");
  return at == std::string::npos ? 0 : std::stod(page.substr(at + name.size() + 2, 40));
}

Numbers RunningUpdater::drain(std::uint64_t events) const {
  const auto until = Clock::now() + kDrain;
  std::optional<Meter> meter;
  double first = 0;
  for (;;) {
    const double written = metric("fcap_updater_events_written_total");
    if (!meter && written > 0) {
      first = written;
      meter = servers_.meter(process_.pid());
    }
    if (written >= static_cast<double>(events)) return meter->per("events", written - first);
    if (Clock::now() > until) {
      throw std::runtime_error("the topic was not drained in time");
    }
    std::this_thread::sleep_for(kBetweenSamples);
  }
}

void RunningUpdater::wait_for(const std::string& name, double at_least) const {
  if (!testing::wait_until([&] { return metric(name) >= at_least; })) {
    throw std::runtime_error(fmt::format("{} is {}", name, metric(name)));
  }
}

void RunningUpdater::end(int signal) {
  process_.send_signal(signal);
  process_.wait();
}

std::string record_commands(const Servers& servers, const std::string& topic,
                            std::uint64_t events) {
  asio::io_context context;
  tcp::acceptor listener(context, {asio::ip::address_v4::loopback(), 0});
  auto recorded =
      std::async(std::launch::async, [&] { return record(listener, servers.redis.port()); });
  const auto port = listener.local_endpoint().port();
  RunningUpdater updater(servers, topic, "127.0.0.1:" + std::to_string(port));
  (void)updater.drain(events);
  updater.end(SIGKILL);
  return recorded.get();
}

Numbers measure_commands(const Servers& servers, const std::string& commands,
                         std::uint64_t events) {
  asio::io_context context;
  tcp::socket socket = connected(context, servers.redis.port());
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
