#include "updater/topic_work.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/clock.h"
#include "events/event_decoder.h"
#include "harness/redis_console.h"
#include "updater/meter.h"
#include "updater/pipeline/coalescer.h"
#include "updater/pipeline/intake.h"
#include "updater/session_stream.h"
#include "updater/topic_producer.h"
#include "updater/topic_reader.h"

namespace fcap::bench {
namespace {

using base::wall_now;
using std::chrono::steady_clock;
using updater::Intake;

constexpr std::size_t kReadBatch = 5000;
constexpr std::size_t kWriteBatch = 500;
constexpr std::chrono::seconds kAnswer{60};
constexpr std::chrono::seconds kBetweenCommits{1};
constexpr std::chrono::days kWindow{30};
constexpr std::string_view kExpirySeconds = "2592000";

Intake::Fate classify(Intake& intake, const rd_kafka_message_t& message, Instant now) {
  return intake.classify(std::string_view(static_cast<const char*>(message.payload), message.len),
                         {now, now});
}

/// A batch of commands on its way; used again and again.
class WriteBatch final : public redis::Request {
 public:
  void add(const events::Event& event) {
    key_.assign("z:{").append(event.user_id).append("}:").append(event.campaign_id);
    redis::append_command(wire, {"ZADD", key_, std::to_string(to_ms(event.time)), event.event_id});
    redis::append_command(
        wire, {"ZREMRANGEBYSCORE", key_, "-inf", fmt::format("({}", to_ms(event.time - kWindow))});
    redis::append_command(wire, {"EXPIRE", key_, kExpirySeconds});
    ++events_;
  }
  void send(redis::Client& client) {
    command_count = static_cast<std::uint32_t>(3 * events_);
    deadline = steady_clock::now() + kAnswer;
    client.submit(*this);
  }
  /// Waits for it, and empties it; how many events it was.
  std::size_t wait() {
    if (events_ == 0) return 0;
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

 private:
  std::atomic<bool> done_{false};
  bool failed_ = false;
  std::size_t events_ = 0;
  std::string key_;
};

}  // namespace

double fill_topic(const Servers& servers, const std::string& topic, std::uint64_t events,
                  std::size_t users) {
  // An hour back: none of it lies in the future or past the retention.
  SessionStream stream({.users = users, .start = wall_now() - std::chrono::hours(1)});
  TopicProducer producer({.brokers = servers.brokers, .topic = topic});
  std::string message;
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < events; ++i) {
    const Arrival arrival = stream.next();
    const std::string key = uuid(kUserIds, arrival.user);
    write_message(arrival, key, message);
    producer.send(key, message);
    bytes += message.size();
  }
  producer.flush();
  return static_cast<double>(bytes) / static_cast<double>(events);
}

Numbers measure_reading(const Servers& servers, const std::string& topic, std::uint64_t events,
                        Stage stage) {
  TopicReader reader(servers.brokers, topic, kReadBatch);
  const auto decoder = events::make_json_event_decoder();
  Intake intake(*decoder, {});
  updater::Coalescer coalescer({});
  updater::WriteSet writes;
  const std::uint64_t before = reader.read().size();  // waits for the connection
  const Meter meter(servers);
  std::uint64_t read = before;
  while (read < events) {
    const auto messages = reader.read();
    const Instant now = wall_now();
    read += messages.size();
    if (stage == Stage::kRead) continue;
    for (const rd_kafka_message_t* message : messages) {
      const bool writes_it = classify(intake, *message, now) == Intake::Fate::kWrite;
      if (stage == Stage::kGroup && writes_it) coalescer.add(intake.event());
    }
    if (stage == Stage::kGroup) coalescer.finish(writes);
  }
  Numbers numbers = meter.per_event(read - before);
  numbers.erase("redis_cpu_us");
  numbers.erase("broker_cpu_us");
  return numbers;
}

Numbers measure_zset_writer(const Servers& servers, const std::string& topic, std::uint64_t events,
                            std::size_t in_flight) {
  RedisConsole console(servers.redis);
  TopicReader reader(servers.brokers, topic, kWriteBatch);
  const auto decoder = events::make_json_event_decoder();
  Intake intake(*decoder, {});
  std::deque<WriteBatch> batches(in_flight);
  std::uint64_t read = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t before = 0;
  std::optional<Meter> meter;
  auto commit_due = steady_clock::now() + kBetweenCommits;
  for (std::size_t turn = 0; acknowledged < events; ++turn) {
    WriteBatch& batch = batches[turn % batches.size()];
    acknowledged += batch.wait();
    if (!meter && acknowledged > 0) {
      before = acknowledged;
      meter.emplace(servers);
    }
    if (read >= events) continue;
    const Instant now = wall_now();
    const auto messages = reader.read();
    for (const rd_kafka_message_t* message : messages) {
      if (classify(intake, *message, now) != Intake::Fate::kWrite) {
        throw std::runtime_error("a message that is not an event");
      }
      batch.add(intake.event());
    }
    read += messages.size();
    batch.send(console.client());
    if (in_flight == 1) acknowledged += batch.wait();
    if (steady_clock::now() >= commit_due) {
      reader.commit();
      commit_due += kBetweenCommits;
    }
  }
  return meter->per_event(acknowledged - before);
}

}  // namespace fcap::bench
