#include <deque>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"
#include "events/event_decoder.h"
#include "harness/redis_console.h"
#include "kafka/consumer.h"
#include "updater/measuring.h"
#include "updater/pipeline/coalescer.h"
#include "updater/pipeline/intake.h"

namespace fcap::bench {
namespace {

using updater::Intake;

constexpr std::size_t kReadBatch = 5000;
constexpr std::size_t kWriteBatch = 500;
constexpr std::chrono::seconds kAnswer{60};
constexpr std::chrono::seconds kBetweenCommits{1};
constexpr std::chrono::milliseconds kMoreWait{5};  // the updater's batch_wait
constexpr std::chrono::days kWindow{30};
constexpr std::string_view kExpirySeconds = "2592000";

// The updater's own consumer, with the updater's settings, from the beginning of the topic. Throws
// when it cannot start or nothing comes.
class TopicReader {
 public:
  TopicReader(const Servers& servers, std::size_t batch_messages_max) : batch_(batch_messages_max) {
    kafka::ConsumerOptions options;
    options.connection.brokers = servers.kafka->brokers();
    options.topic = kFilledTopic;
    options.group_id = "bench-reader";
    consumer_ = testing::or_throw(kafka::Consumer::create(options, {}, {}));
    const std::int32_t partitions = testing::or_throw(consumer_->partition_count(kAnswer));
    for (std::int32_t p = 0; p < partitions; ++p) {
      next_.push_back({p, 0});  // the bench has made the topic
    }
    testing::or_throw(consumer_->assign(next_));
  }

  // The next messages; valid until the next call.
  std::span<rd_kafka_message_t* const> read() {
    const auto until = Clock::now() + kAnswer;
    // A poll may give nothing but the news that some partition has ended.
    do {
      (void)consumer_->poll(batch_, kAnswer, kMoreWait);
    } while (batch_.messages().empty() && Clock::now() < until);
    if (batch_.messages().empty()) throw std::runtime_error("nothing comes from the topic");
    for (const rd_kafka_message_t* message : batch_.messages()) {
      next_[static_cast<std::size_t>(message->partition)].offset = message->offset + 1;
    }
    return batch_.messages();
  }

  // Commits what read() has given so far, without waiting.
  void commit() {
    std::vector<kafka::PartitionOffset> known = next_;
    std::erase_if(known, [](const kafka::PartitionOffset& at) { return at.offset <= 0; });
    consumer_->commit_async(known);
  }

  // The event in the message, until the next call; null: the message holds no event.
  const events::Event* decode(const rd_kafka_message_t& message, Instant now) {
    const std::string_view text(static_cast<const char*>(message.payload), message.len);
    if (!intake_.decode(text)) return nullptr;
    updater::LeftOut left_out;
    const events::Event* found = nullptr;
    intake_.sort_events(
        {now, now}, left_out, [&](const events::Event& event) { found = &event; },
        [](const events::Rejected&) {});
    return found;
  }

 private:
  std::unique_ptr<kafka::Consumer> consumer_;
  kafka::MessageBatch batch_;
  std::vector<kafka::PartitionOffset> next_;
  std::unique_ptr<events::EventDecoder> decoder_ = events::make_json_event_decoder();
  Intake intake_{*decoder_, {}};
};

constexpr std::uint32_t kCommandsPerEvent = 3;

// What the writer of the sorted sets writes; `key` is memory that is used again.
void append_event(const events::Event& event, std::string& key, CommandBatch& batch) {
  key.assign("z:{").append(event.user_id).append("}:").append(event.campaign_id);
  append(batch, {"ZADD", key, std::to_string(to_ms(event.time)), event.event_id});
  append(batch, {"ZREMRANGEBYSCORE", key, "-inf", fmt::format("({}", to_ms(event.time - kWindow))});
  append(batch, {"EXPIRE", key, kExpirySeconds});
}

}  // namespace

Numbers measure_reading(const Servers& servers, std::uint64_t events, UpdaterStage stage) {
  TopicReader reader(servers, kReadBatch);
  updater::Coalescer coalescer({});
  updater::WriteSet writes;
  const std::uint64_t before = reader.read().size();  // waits for the connection
  const Meter meter({{"client_cpu_us", getpid()}});
  std::uint64_t read = before;
  while (read < events) {
    const auto messages = reader.read();
    const Instant now = base::wall_now();
    read += messages.size();
    if (stage == UpdaterStage::kRead) continue;
    for (const rd_kafka_message_t* message : messages) {
      const events::Event* const event = reader.decode(*message, now);
      if (stage == UpdaterStage::kGroup && event != nullptr) coalescer.add(*event);
    }
    if (stage == UpdaterStage::kGroup) coalescer.finish(writes);
  }
  return meter.per("events", static_cast<double>(read - before));
}

Numbers measure_zset_writer(const Servers& servers, std::uint64_t events, std::size_t in_flight) {
  RedisConsole console(servers.redis.address());
  TopicReader reader(servers, kWriteBatch);
  std::deque<CommandBatch> batches(in_flight);
  std::string key;
  std::uint64_t read = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t before = 0;
  std::optional<Meter> meter;
  auto commit_due = Clock::now() + kBetweenCommits;
  for (std::size_t turn = 0; acknowledged < events; ++turn) {
    CommandBatch& batch = batches[turn % batches.size()];
    acknowledged += batch.wait() / kCommandsPerEvent;
    if (!meter && acknowledged > 0) {
      before = acknowledged;
      meter = servers.meter(getpid());
    }
    if (read >= events) continue;
    const Instant now = base::wall_now();
    const auto messages = reader.read();
    for (const rd_kafka_message_t* message : messages) {
      const events::Event* const event = reader.decode(*message, now);
      if (event == nullptr) throw std::runtime_error("a message is not an event");
      append_event(*event, key, batch);
    }
    read += messages.size();
    batch.send(console.client());
    if (in_flight == 1) acknowledged += batch.wait() / kCommandsPerEvent;
    if (Clock::now() >= commit_due) {
      reader.commit();
      commit_due += kBetweenCommits;
    }
  }
  return meter->per("events", static_cast<double>(acknowledged - before));
}

}  // namespace fcap::bench
