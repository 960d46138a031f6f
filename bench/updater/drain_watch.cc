// Watches a running fcap-updater drain a topic, by its metrics page and by /proc: from the first
// acknowledged event seen to the last. Prints one JSON object.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "updater/cpu_time.h"

namespace {

using fcap::bench::cpu_seconds;
using fcap::bench::cpu_seconds_by_thread;
using std::chrono::steady_clock;

// Each look costs the updater about a fifth of a millisecond.
constexpr std::chrono::milliseconds kBetweenLooks{25};

struct Flags {
  int metrics_port = 0;
  int updater_pid = 0;
  int redis_pid = 0;
  int broker_pid = 0;
  std::uint64_t events = 0;
  int timeout_seconds = 300;
};

struct Look {
  steady_clock::time_point at;
  std::uint64_t events = 0;
  double redis = 0;
  double broker = 0;
  std::map<std::string, double> updater;
};

std::string fetch(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string page;
  const std::string_view ask =
      "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::send(fd, ask.data(), ask.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(ask.size())) {
    char bytes[16384];
    for (ssize_t got = 0; (got = ::recv(fd, bytes, sizeof bytes, 0)) > 0;) {
      page.append(bytes, static_cast<std::size_t>(got));
    }
  }
  ::close(fd);
  return page;
}

std::uint64_t metric(const std::string& page, const std::string& name) {
  const std::size_t at = page.find("\n" + name + " ");
  if (at == std::string::npos) return 0;
  return static_cast<std::uint64_t>(std::strtod(page.c_str() + at + name.size() + 2, nullptr));
}

Look look(const Flags& flags) {
  Look now;
  now.events = metric(fetch(flags.metrics_port), "fcap_updater_events_written_total");
  now.at = steady_clock::now();
  now.redis = cpu_seconds(flags.redis_pid);
  now.broker = cpu_seconds(flags.broker_pid);
  now.updater = cpu_seconds_by_thread(flags.updater_pid);
  return now;
}

int watch(const Flags& flags) {
  const auto until = steady_clock::now() + std::chrono::seconds(flags.timeout_seconds);
  Look first;
  Look last;
  while (last.events < flags.events) {
    last = look(flags);
    if (first.events == 0) first = last;
    if (last.at > until) throw std::runtime_error("the topic was not drained in time");
    std::this_thread::sleep_for(kBetweenLooks);
  }
  const std::chrono::duration<double> took = last.at - first.at;
  const auto events = static_cast<double>(last.events - first.events);
  double updater = 0;
  std::string threads;
  for (const auto& [name, seconds] : last.updater) {
    const auto before = first.updater.find(name);
    const double spent = seconds - (before == first.updater.end() ? 0 : before->second);
    updater += spent;
    threads +=
        fmt::format(R"({}"{}": {:.3f})", threads.empty() ? "" : ", ", name, 1e6 * spent / events);
  }
  fmt::print(R"({{"events_per_second": {:.0f}, "client_cpu_us": {:.3f}, "redis_cpu_us": {:.3f}, )"
             R"("broker_cpu_us": {:.3f}, "client_threads_cpu_us": {{{}}}}})"
             "\n",
             events / took.count(), 1e6 * updater / events,
             1e6 * (last.redis - first.redis) / events, 1e6 * (last.broker - first.broker) / events,
             threads);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Measures how fcap-updater drains a topic.");
  app.add_option("--metrics-port", flags.metrics_port, "Where it serves /metrics")->required();
  app.add_option("--updater-pid", flags.updater_pid, "Its process")->required();
  app.add_option("--redis-pid", flags.redis_pid, "Redis' process")->required();
  app.add_option("--broker-pid", flags.broker_pid, "Kafka's process")->required();
  app.add_option("--events", flags.events, "How many the topic holds")->required();
  app.add_option("--timeout", flags.timeout_seconds, "In seconds")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return watch(flags);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "drain_watch: %s\n", failure.what());
    return 1;
  }
}
