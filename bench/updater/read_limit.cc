// How fast one core takes events from a topic without Redis: reading alone (the limit that
// librdkafka sets), with decoding, and with grouping by user into the bytes to append. The parts
// are the updater's. Prints one JSON object.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "events/event_decoder.h"
#include "updater/cpu_time.h"
#include "updater/pipeline/coalescer.h"
#include "updater/pipeline/intake.h"
#include "updater/topic_reader.h"

namespace {

using namespace fcap;
using std::chrono::steady_clock;

struct Flags {
  std::string brokers = "127.0.0.1:9092";
  std::string topic = "impressions";
  std::string stage = "group";
  std::uint64_t events = 1'000'000;
  std::size_t batch = 5000;
};

std::string_view payload_of(const rd_kafka_message_t& message) {
  return {static_cast<const char*>(message.payload), message.len};
}

int measure(const Flags& flags) {
  bench::TopicReader reader(flags.brokers, flags.topic, flags.batch);
  const auto decoder = events::make_json_event_decoder();
  updater::Intake intake(*decoder, {});
  updater::Coalescer coalescer({});
  updater::WriteSet writes;
  const bool decodes = flags.stage != "read";
  const bool groups = flags.stage == "group";
  std::uint64_t read = reader.read().size();  // the first, which waits for the connection
  const std::uint64_t before = read;
  const auto started = steady_clock::now();
  const double cpu_before = bench::cpu_seconds(getpid());
  while (read < flags.events) {
    const auto messages = reader.read();
    const Instant now =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    read += messages.size();
    if (!decodes) continue;
    for (const rd_kafka_message_t* message : messages) {
      const auto fate = intake.judge(payload_of(*message), {now, now});
      if (groups && fate == updater::Intake::Fate::kWrite) coalescer.add(intake.event());
    }
    if (groups) coalescer.finish(writes);
  }
  const std::chrono::duration<double> took = steady_clock::now() - started;
  const auto events = static_cast<double>(read - before);
  fmt::print(R"({{"events_per_second": {:.0f}, "client_cpu_us": {:.3f}}})"
             "\n",
             events / took.count(), 1e6 * (bench::cpu_seconds(getpid()) - cpu_before) / events);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Reads a topic without Redis.");
  app.add_option("--brokers", flags.brokers, "host:port")->capture_default_str();
  app.add_option("--topic", flags.topic, "The topic")->capture_default_str();
  app.add_option("--stage", flags.stage, "How far to go")
      ->check(CLI::IsMember({"read", "decode", "group"}))
      ->capture_default_str();
  app.add_option("--events", flags.events, "How many the topic holds")->capture_default_str();
  app.add_option("--batch", flags.batch, "Events a poll")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  try {
    return measure(flags);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "read_limit: %s\n", failure.what());
    return 1;
  }
}
