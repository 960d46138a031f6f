// Puts impressions of bursty sessions into a topic before a bench, so that producing is no part of
// what is measured. Prints one JSON object.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "updater/session_stream.h"
#include "updater/topic_producer.h"

namespace {

using namespace fcap;

struct Flags {
  std::string brokers = "127.0.0.1:9092";
  std::string topic = "impressions";
  std::uint64_t events = 1'000'000;
  std::size_t users = 100'000;
};

int fill(const Flags& flags) {
  using std::chrono::steady_clock;
  // An hour back: none of it lies in the future or past the retention.
  bench::SessionOptions options;
  options.users = flags.users;
  options.start = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now() -
                                                                std::chrono::hours(1));
  bench::SessionStream stream(options);
  bench::TopicProducer producer({.brokers = flags.brokers, .topic = flags.topic});
  const auto started = steady_clock::now();
  std::string key;
  std::string message;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < flags.events; ++i) {
    const bench::Impression impression = stream.next();
    key.clear();
    bench::append_uuid(key, bench::kUserIds, impression.user);
    bench::write_message(impression, key, message);
    producer.send(key, message);
    bytes += message.size();
  }
  producer.flush();
  const std::chrono::duration<double> took = steady_clock::now() - started;
  fmt::print("{{\"events\": {}, \"message_bytes\": {:.1f}, \"events_per_second\": {:.0f}}}\n",
             flags.events, static_cast<double>(bytes) / static_cast<double>(flags.events),
             static_cast<double>(flags.events) / took.count());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Fills a topic with impressions of bursty sessions.");
  app.add_option("--brokers", flags.brokers, "host:port")->capture_default_str();
  app.add_option("--topic", flags.topic, "The topic, which must exist")->capture_default_str();
  app.add_option("--events", flags.events, "How many")->capture_default_str();
  app.add_option("--users", flags.users, "Of how many users")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return fill(flags);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "fill_topic: %s\n", failure.what());
    return 1;
  }
}
