#include "updater/running_updater.h"

#include <fstream>
#include <optional>
#include <regex>
#include <stdexcept>
#include <thread>

#include <asio/connect.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "test_paths.h"

namespace fcap::bench {
namespace {

using asio::ip::tcp;

constexpr std::chrono::minutes kDrain{5};
// Each request for the metrics costs the updater about a fifth of a millisecond.
constexpr std::chrono::milliseconds kBetweenSamples{25};

}  // namespace

Servers::Servers(const PartServer& part_redis) : redis(part_redis) {
  for (const char* topic : {kFilledTopic, kLiveTopic, kSlowTopic}) {
    kafka.service().act("create-topic", {topic, "4"});
  }
}

Meter Servers::meter(int client_pid) const {
  return Meter({{"client_cpu_us", client_pid},
                {"redis_cpu_us", redis.pid()},
                {"broker_cpu_us", kafka.pid()}});
}

std::string write_config(const Servers& servers, const std::string& topic, const std::string& redis,
                         std::uint64_t gap_messages_min) {
  static int groups = 0;
  std::string file = servers.directory.path() / "updater.json";
  std::ofstream(file) << fmt::format(
      R"({{"kafka": {{"brokers": ["{}"], "topic": "{}", "group_id": "bench-{}", )"
      R"("dead_letter_topic": ""}}, "redis": {{"addresses": ["{}"]}}, )"
      R"("pipeline": {{"gap_messages_min": {}}}, )"
      R"("compaction": {{"drain_timeout": "60s"}}, "http": {{"port": 0}}}})",
      servers.kafka.address(), topic, ++groups, redis, gap_messages_min);
  return file;
}

RunningUpdater::RunningUpdater(const Servers& servers, const std::string& topic,
                               const std::string& redis, std::uint64_t gap_messages_min)
    : servers_(servers),
      process_({FCAP_UPDATER_BINARY, "run", "--config",
                write_config(servers, topic, redis, gap_messages_min)}) {
  static const std::regex serving("serving http://[^/]*:([0-9]+)/metrics");
  const bool serves = testing::wait_until([this] {
    const std::string log = process_.errors();
    std::smatch found;
    if (std::regex_search(log, found, serving)) port_ = found[1];
    return !port_.empty();
  });
  if (!serves) throw std::runtime_error("fcap-updater: " + process_.errors());
  pin(process_.pid(), kClientCore);
}

double RunningUpdater::metric(const std::string& name) const {
  asio::io_context context;
  tcp::socket socket(context);
  asio::connect(socket, tcp::resolver(context).resolve("127.0.0.1", port_));
  asio::write(socket, asio::buffer(std::string("GET /metrics HTTP/1.0\r\n\r\n")));
  std::string page;
  std::error_code ended;
  asio::read(socket, asio::dynamic_buffer(page), ended);
  const std::size_t at = page.find("\n" + name + " ");
  return at == std::string::npos ? 0 : std::stod(page.substr(at + name.size() + 2, 40));
}

Numbers RunningUpdater::drain(std::uint64_t events) const {
  const auto until = std::chrono::steady_clock::now() + kDrain;
  std::optional<Meter> meter;
  double first = 0;
  for (;;) {
    const double written = metric("fcap_updater_events_written_total");
    if (!meter && written > 0) {
      first = written;
      meter = servers_.meter(process_.pid());
    }
    if (written >= static_cast<double>(events)) return meter->per("events", written - first);
    if (std::chrono::steady_clock::now() > until) {
      throw std::runtime_error("the topic was not drained in time");
    }
    std::this_thread::sleep_for(kBetweenSamples);
  }
}

void RunningUpdater::end(int signal) {
  process_.send_signal(signal);
  process_.wait();
}

}  // namespace fcap::bench
