// The usual writer of the sorted-set layout, as a peer of fcap-updater: for each event ZADD to the
// set of its user and campaign, ZREMRANGEBYSCORE of what has left the window, EXPIRE. Batches of
// 500 events pipelined, several in flight, commits asynchronous. It shares fcap's consumer, decoder
// and Redis client, so what differs is the layout and what is written. Prints one JSON object.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <deque>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "events/event_decoder.h"
#include "redis/client.h"
#include "updater/cpu_time.h"
#include "updater/pipeline/intake.h"
#include "updater/topic_reader.h"

namespace {

using namespace fcap;
using std::chrono::steady_clock;

struct Flags {
  std::string brokers = "127.0.0.1:9092";
  std::string topic = "impressions";
  std::string redis = "127.0.0.1:6379";
  std::uint64_t events = 1'000'000;
  std::size_t batch = 500;
  std::size_t in_flight = 4;
  int redis_pid = 0;
  int broker_pid = 0;
};

constexpr std::chrono::days kWindow{30};
constexpr std::string_view kExpirySeconds = "2592000";

/// A batch of commands on its way; used again and again.
class Batch final : public redis::Request {
 public:
  void add(const events::Event& event, std::string& key, std::string& text) {
    key.assign("z:{").append(event.user_id).append("}:").append(event.campaign_id);
    text.clear();
    fmt::format_to(std::back_inserter(text), "{}", to_ms(event.time));
    redis::append_command(wire, {"ZADD", key, text, event.event_id});
    text.assign("(");
    fmt::format_to(std::back_inserter(text), "{}", to_ms(event.time - kWindow));
    redis::append_command(wire, {"ZREMRANGEBYSCORE", key, "-inf", text});
    redis::append_command(wire, {"EXPIRE", key, kExpirySeconds});
    ++events_;
  }
  void send(redis::Client& client) {
    command_count = static_cast<std::uint32_t>(3 * events_);
    deadline = steady_clock::now() + std::chrono::seconds(60);
    client.submit(*this);
  }
  /// Waits for it, and empties it; how many events it was.
  std::size_t wait() {
    done_.wait(false);
    if (failed_) throw std::runtime_error("Redis did not take a batch");
    done_ = false;
    wire.clear();
    return std::exchange(events_, 0);
  }
  void on_reply(std::uint32_t, const redis::Reply& reply) noexcept override {
    if (reply.kind == redis::Reply::Kind::kError) failed_ = true;
  }
  void on_done(redis::TransportCode code) noexcept override {
    if (code != redis::TransportCode::kOk) failed_ = true;
    done_ = true;
    done_.notify_one();
  }
  [[nodiscard]] bool empty() const noexcept { return events_ == 0; }

 private:
  std::atomic<bool> done_{false};
  bool failed_ = false;
  std::size_t events_ = 0;
};

struct Spent {
  double client;
  double redis;
  double broker;
};

Spent spent(const Flags& flags) {
  return {bench::cpu_seconds(getpid()), bench::cpu_seconds(flags.redis_pid),
          bench::cpu_seconds(flags.broker_pid)};
}

std::unique_ptr<redis::Client> connect(const Flags& flags) {
  RedisOptions options;
  options.addresses = {flags.redis};
  auto made = redis::Client::create(options);
  if (!made.ok()) throw std::runtime_error(made.status().text());
  while (!made.value()->connected()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return std::move(made).value();
}

int measure(const Flags& flags) {
  const auto client = connect(flags);
  bench::TopicReader reader(flags.brokers, flags.topic, flags.batch);
  const auto decoder = events::make_json_event_decoder();
  updater::Intake intake(*decoder, {});
  std::deque<Batch> batches(flags.in_flight);
  std::string key;
  std::string text;
  std::uint64_t read = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t first = 0;
  steady_clock::time_point started;
  Spent before{};
  auto commit_due = steady_clock::now() + std::chrono::seconds(1);
  for (std::size_t turn = 0; acknowledged < flags.events; ++turn) {
    Batch& batch = batches[turn % batches.size()];
    if (!batch.empty()) acknowledged += batch.wait();
    if (first == 0 && acknowledged > 0) {
      first = acknowledged;
      started = steady_clock::now();
      before = spent(flags);
    }
    if (read >= flags.events) continue;
    const Instant now =
        std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
    const auto messages = reader.read();
    for (const rd_kafka_message_t* message : messages) {
      const std::string_view payload(static_cast<const char*>(message->payload), message->len);
      if (intake.judge(payload, {now, now}) != updater::Intake::Fate::kWrite) {
        throw std::runtime_error("a message that is no event");
      }
      batch.add(intake.event(), key, text);
    }
    read += messages.size();
    batch.send(*client);
    if (flags.in_flight == 1) acknowledged += batch.wait();
    if (steady_clock::now() >= commit_due) {
      reader.commit();
      commit_due += std::chrono::seconds(1);
    }
  }
  const std::chrono::duration<double> took = steady_clock::now() - started;
  const Spent after = spent(flags);
  const auto events = static_cast<double>(acknowledged - first);
  fmt::print(R"({{"events_per_second": {:.0f}, "client_cpu_us": {:.3f}, "redis_cpu_us": {:.3f}, )"
             R"("broker_cpu_us": {:.3f}}})"
             "\n",
             events / took.count(), 1e6 * (after.client - before.client) / events,
             1e6 * (after.redis - before.redis) / events,
             1e6 * (after.broker - before.broker) / events);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Writes a topic's events to sorted sets.");
  app.add_option("--brokers", flags.brokers, "host:port")->capture_default_str();
  app.add_option("--topic", flags.topic, "The topic")->capture_default_str();
  app.add_option("--redis", flags.redis, "host:port")->capture_default_str();
  app.add_option("--events", flags.events, "How many the topic holds")->capture_default_str();
  app.add_option("--batch", flags.batch, "Events that go out together")->capture_default_str();
  app.add_option("--in-flight", flags.in_flight, "Batches at a time; 1 takes turns with Redis")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--redis-pid", flags.redis_pid, "Redis' process")->required();
  app.add_option("--broker-pid", flags.broker_pid, "Kafka's process")->required();
  CLI11_PARSE(app, argc, argv);
  try {
    return measure(flags);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "zset_writer: %s\n", failure.what());
    return 1;
  }
}
