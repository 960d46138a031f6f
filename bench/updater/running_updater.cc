#include "updater/running_updater.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <thread>

#include <asio/ip/tcp.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace fcap::bench {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kStart{30};
constexpr std::chrono::minutes kDrain{5};
constexpr std::chrono::milliseconds kBetweenPolls{50};
// Each request for the metrics costs the updater about a fifth of a millisecond.
constexpr std::chrono::milliseconds kBetweenSamples{25};

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::uint64_t metric(const std::string& page, const std::string& name) {
  const std::size_t at = page.find("\n" + name + " ");
  if (at == std::string::npos) return 0;
  return static_cast<std::uint64_t>(std::strtod(page.c_str() + at + name.size() + 2, nullptr));
}

/// What had happened at one instant.
struct Sample {
  steady_clock::time_point at;
  std::uint64_t events = 0;
  double updater = 0;
  double redis = 0;
  double broker = 0;
};

}  // namespace

std::filesystem::path write_config(const Servers& servers, const std::string& topic,
                                   const std::string& redis, std::uint64_t gap_messages_min) {
  static int groups = 0;
  const std::filesystem::path file = servers.directory / "updater.json";
  std::ofstream(file) << fmt::format(
      R"({{"kafka": {{"brokers": ["{}"], "topic": "{}", "group_id": "bench-{}-{}", )"
      R"("dead_letter_topic": ""}}, "redis": {{"addresses": ["{}"]}}, )"
      R"("pipeline": {{"gap_messages_min": {}}}, )"
      R"("compaction": {{"drain_timeout": "60s"}}, "http": {{"port": 0}}}})",
      servers.brokers, topic, getpid(), ++groups, redis, gap_messages_min);
  return file;
}

RunningUpdater::RunningUpdater(const Servers& servers, const std::string& topic,
                               const std::string& redis, std::uint64_t gap_messages_min)
    : servers_(servers),
      process_({servers.updater, "run", "--config",
                write_config(servers, topic, redis, gap_messages_min)},
               servers.directory / "updater.log") {
  static const std::regex serving("serving http://[^/]*:([0-9]+)/metrics");
  const auto until = steady_clock::now() + kStart;
  while (port_ == 0) {
    const std::string log = text_of(servers.directory / "updater.log");
    std::smatch found;
    if (std::regex_search(log, found, serving)) port_ = std::stoi(found[1]);
    if (steady_clock::now() > until) throw std::runtime_error("fcap-updater: " + log);
    std::this_thread::sleep_for(kBetweenPolls);
  }
  pin(process_.pid(), kClientCore);
}

std::string RunningUpdater::get(const std::string& path) const {
  asio::ip::tcp::iostream stream("127.0.0.1", std::to_string(port_));
  stream << "GET " << path << " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  return {std::istreambuf_iterator<char>(stream), {}};
}

void RunningUpdater::wait_until_ready() const {
  const auto until = steady_clock::now() + kStart;
  while (get("/readyz").find(" 200 ") == std::string::npos) {
    if (steady_clock::now() > until) throw std::runtime_error("fcap-updater is not ready");
    std::this_thread::sleep_for(kBetweenPolls);
  }
}

std::uint64_t RunningUpdater::gap_offsets() const {
  return metric(get("/metrics"), "fcap_updater_gap_offsets");
}

std::uint64_t RunningUpdater::gap_messages() const {
  return metric(get("/metrics"), "fcap_updater_gap_messages_total");
}

void RunningUpdater::wait_for_gap() const {
  const auto until = steady_clock::now() + kStart;
  while (gap_offsets() == 0) {
    if (steady_clock::now() > until) throw std::runtime_error("there is no gap");
    std::this_thread::sleep_for(kBetweenPolls);
  }
}

Numbers RunningUpdater::drain(std::uint64_t events) const {
  const auto until = steady_clock::now() + kDrain;
  Sample first;
  Sample last;
  while (last.events < events) {
    last.events = metric(get("/metrics"), "fcap_updater_events_written_total");
    last.at = steady_clock::now();
    last.updater = cpu_seconds(process_.pid());
    last.redis = cpu_seconds(servers_.redis_pid);
    last.broker = cpu_seconds(servers_.broker_pid);
    if (first.events == 0) first = last;
    if (last.at > until) throw std::runtime_error("the topic was not drained in time");
    std::this_thread::sleep_for(kBetweenSamples);
  }
  const std::chrono::duration<double> took = last.at - first.at;
  const auto drained = static_cast<double>(last.events - first.events);
  return {{"events_per_second", drained / took.count()},
          {"client_cpu_us", 1e6 * (last.updater - first.updater) / drained},
          {"redis_cpu_us", 1e6 * (last.redis - first.redis) / drained},
          {"broker_cpu_us", 1e6 * (last.broker - first.broker) / drained}};
}

}  // namespace fcap::bench
