// Replay from a real Kafka into a real Redis: complete, repeatable, and gentle.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include "events/event_decoder.h"
#include "redis/client.h"
#include "redis/redis_store.h"
#include "support/expected_ledgers.h"
#include "support/kafka_test.h"
#include "support/redis_server.h"
#include "support/running_updater.h"
#include "tests/support/sanitized.h"
#include "tests/support/seed.h"
#include "updater/replay/replay.h"

namespace {

std::atomic<rd_kafka_t*> last_assigned{nullptr};  // the replay's

}  // namespace

// In front of librdkafka's own: it tells the tests which client the replay reads with.
extern "C" rd_kafka_resp_err_t rd_kafka_assign(rd_kafka_t* client,
                                               const rd_kafka_topic_partition_list_t* partitions) {
  static const auto real =
      reinterpret_cast<decltype(&rd_kafka_assign)>(dlsym(RTLD_NEXT, "rd_kafka_assign"));
  last_assigned = client;
  return real(client, partitions);
}

namespace fcap {
namespace replay_kafka_test {

using testing::EventMaker;
using testing::ExpectedLedgers;
using testing::KafkaProducer;
using testing::MadeEvent;
using updater::Replay;
using updater::ReplayOptions;
using updater::ReplaySummary;

constexpr std::uint64_t kSeed = 20'240'608;  // unless FCAP_TEST_SEED says another

class ReplayTest : public testing::KafkaTest {
 protected:
  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    RedisOptions options;
    options.addresses = {redis_->address()};
    auto client = redis::Client::create(options);
    ASSERT_TRUE(client.ok()) << client.status().text();
    client_ = std::move(client).value();
    store_ = redis::make_redis_store(client_);
    decoder_ = events::make_json_event_decoder();
  }

  void produce(std::size_t count, std::int32_t partition = KafkaProducer::kByKey) {
    for (std::size_t i = 0; i < count; ++i) {
      const MadeEvent event = maker_.next();
      producer_->send(topic_, event.user_id, event.json(), partition);
      expected_.add(event);
    }
    producer_->flush();
  }

  ReplayOptions options() const {
    ReplayOptions made;
    made.consumer.connection.brokers = kafka->brokers();
    made.consumer.topic = topic_;
    made.consumer.group_id = topic_ + "-replay";
    return made;
  }

  ReplaySummary replay(const ReplayOptions& wanted, const std::stop_token& stop = {}) {
    updater::ReplayParts parts;
    parts.store = store_.get();
    parts.decoder = decoder_.get();
    parts.memory = [this] { return updater::redis_memory(*client_, std::chrono::seconds{30}); };
    parts.progress = [this](const updater::ReplayProgress& p) { progress_.push_back(p); };
    auto made = Replay::create(wanted, parts);
    EXPECT_TRUE(made.ok()) << made.status().text();
    auto summary = made.value()->run(stop);
    EXPECT_TRUE(summary.ok()) << summary.status().text();
    return summary.ok() ? summary.value() : ReplaySummary{};
  }

  StatusCode failure_of(const ReplayOptions& wanted) {
    updater::ReplayParts parts;
    parts.store = store_.get();
    parts.decoder = decoder_.get();
    auto made = Replay::create(wanted, parts);
    return made.ok() ? made.value()->run({}).status().code() : made.status().code();
  }

  // Every key with its record's digest and its expiry, a line each.
  std::string contents() {
    return redis_->command({"EVAL", R"(
        local lines = {}
        for _, key in ipairs(redis.call('KEYS', '*')) do
          lines[#lines + 1] = key .. ' ' .. redis.sha1hex(redis.call('GET', key)) .. ' ' ..
                              redis.call('PEXPIRETIME', key)
        end
        table.sort(lines)
        return table.concat(lines, '\n'))",
                            "0"});
  }

  std::shared_ptr<redis::Client> client_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<events::EventDecoder> decoder_;
  EventMaker maker_{test_seed(kSeed), 500};
  ExpectedLedgers expected_;
  std::vector<updater::ReplayProgress> progress_;
};

// Kafka's client stops reading a partition, and nobody is told.
TEST_F(ReplayTest, APartitionThatKafkasClientHasStoppedReadingIsNamedAndReadAgain) {
  produce(3'000);
  ReplayOptions slow = options();
  slow.messages_per_second = 3'000;
  slow.progress_interval = std::chrono::milliseconds{0};
  updater::ReplayParts parts;
  parts.store = store_.get();
  parts.decoder = decoder_.get();
  bool stopped = false;
  parts.progress = [&](const updater::ReplayProgress& progress) {
    if (progress.messages_read == 0 || std::exchange(stopped, true)) return;
    const kafka::Ptr<rd_kafka_topic_partition_list_t> list(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), 1);
    EXPECT_EQ(rd_kafka_pause_partitions(last_assigned, list.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
  };
  std::string log;
  parts.log = [&](LogLevel, std::string_view line) { log += std::string(line) + "\n"; };
  auto made = Replay::create(slow, parts);
  ASSERT_TRUE(made.ok()) << made.status().text();
  std::stop_source give_up;
  auto running =
      std::async(std::launch::async, [&] { return made.value()->run(give_up.get_token()); });
  EXPECT_EQ(running.wait_for(std::chrono::minutes{2}), std::future_status::ready);
  give_up.request_stop();
  const auto summary = running.get();
  ASSERT_TRUE(summary.ok()) << summary.status().text();
  EXPECT_TRUE(stopped);
  EXPECT_EQ(summary.value().end, ReplaySummary::ReplayEnd::kComplete) << log;
  EXPECT_NE(log.find("partition 1: Kafka delivers nothing from offset "), std::string::npos) << log;
  EXPECT_TRUE(expected_.compare(*store_).none());
}

// Live checks share Redis with a replay: a burst at full speed followed by a pause would be the
// same rate on average. The replay's own clock judges, at its own turns, by how much it has added
// to records by then: how long a busy machine holds the commands back is no matter of the replay.
TEST_F(ReplayTest, WritesNoFasterThanItsRateAtAnyTime) {
  constexpr double kRate = 2'000;
  constexpr double kTurn = kRate / 20;  // so many are read at a time
  constexpr double kMadeUpFor = 0.1;    // s, after a delay
  produce(6'000);
  ReplayOptions slow = options();
  slow.messages_per_second = kRate;
  slow.progress_interval = std::chrono::milliseconds{0};
  EXPECT_EQ(replay(slow).messages_read, 6'000U);
  ASSERT_GE(progress_.size(), 6'000 / kTurn);
  for (std::size_t first = 0; first < progress_.size(); ++first) {
    const auto& from = progress_[first];
    EXPECT_EQ(from.counts.added, from.messages_read) << "nothing is collected for later";
    for (std::size_t last = first + 1; last < progress_.size(); ++last) {
      const auto& to = progress_[last];
      // In whole milliseconds, so that they may be one more.
      const double seconds = static_cast<double>((to.elapsed - from.elapsed).count() + 1) / 1000;
      ASSERT_LE(static_cast<double>(to.counts.added - from.counts.added),
                kRate * (seconds + kMadeUpFor) + kTurn)
          << "within " << seconds << " s, of " << progress_.size() << " turns";
    }
  }
}

TEST_F(ReplayTest, FillsAnEmptyRedisAndChangesNothingTheSecondTime) {
  produce(20'000);
  producer_->send(topic_, "x", "no event at all");
  producer_->send(topic_, "x",
                  R"({"user_id":"old","campaign_id":"c","timestamp":1000,"imp_id":"i"})");
  producer_->flush();
  const ReplaySummary first = replay(options());
  EXPECT_EQ(first.end, ReplaySummary::ReplayEnd::kComplete);
  EXPECT_EQ(first.messages_read, 20'002U);
  EXPECT_EQ(first.counts.added, 20'000U) << "seed " << test_seed(kSeed);
  EXPECT_EQ(first.left_out.rejected, 1U);
  EXPECT_EQ(first.left_out.too_old, 1U);
  EXPECT_TRUE(expected_.compare(*store_).none());
  EXPECT_FALSE(progress_.empty());
  const auto before = contents();
  const ReplaySummary second = replay(options());
  EXPECT_TRUE(second.changed_nothing());
  EXPECT_EQ(second.counts.already_there, 20'000U);
  EXPECT_EQ(second.counts.added, 0U);
  EXPECT_EQ(contents(), before);
}

TEST_F(ReplayTest, PutsBackWhatIsMissingAndNothingElse) {
  produce(3'000);
  (void)replay(options());
  const auto full = contents();
  std::istringstream lines(full);
  std::vector<std::string> removal = {"DEL"};
  for (std::string key, rest; removal.size() <= 100 && lines >> key && std::getline(lines, rest);) {
    removal.push_back(key);
  }
  ASSERT_EQ(redis_->command(removal), "100");
  const ReplaySummary summary = replay(options());
  EXPECT_EQ(summary.counts.records_changed, 100U);
  EXPECT_TRUE(expected_.compare(*store_).none());
  EXPECT_EQ(contents(), full) << "equal ledgers are equal bytes";
}

TEST_F(ReplayTest, KeepsToItsRangeAndPartitions) {
  produce(1'000, 0);
  produce(1'000, 1);
  ReplayOptions part = options();
  part.partitions = {1};
  part.from_offset = 100;
  part.to_offset = 350;
  EXPECT_EQ(replay(part).messages_read, 250U);

  ReplayOptions single = options();
  single.from_offsets = {{0, 900}, {1, 100}};
  single.to_offsets = {{1, 350}};
  EXPECT_EQ(replay(single).messages_read, 350U);
  single.partitions = {0};
  EXPECT_EQ(failure_of(single), StatusCode::kInvalidArgument) << "partition 1 is not replayed";

  ReplayOptions future = options();
  future.from_time = std::chrono::floor<std::chrono::milliseconds>(
      std::chrono::system_clock::now() + std::chrono::hours{1});
  EXPECT_EQ(replay(future).messages_read, 0U);

  ReplayOptions past = options();
  past.to_time = instant_from_ms(1'000);
  EXPECT_EQ(replay(past).messages_read, 0U);

  ReplayOptions unknown = options();
  unknown.partitions = {kPartitions};
  EXPECT_EQ(failure_of(unknown), StatusCode::kInvalidArgument);
}

// A partition's last offset is a mark of its transaction, so that only its end tells that there is
// nothing more to come; the end is told once, between messages of the other partitions.
TEST_F(ReplayTest, APartitionThatEndsWhileOthersGoOnHasEnded) {
  producer_ = std::make_unique<KafkaProducer>(kafka->brokers(), topic_);
  producer_->begin_transaction();
  produce(20, 0);
  produce(20, 1);
  produce(40'000, 2);
  producer_->commit_transaction();
  // The broker ends a transaction a little later than it says.
  ASSERT_TRUE(
      testing::wait_until([&] { return kafka->end_sum(topic_, kPartitions) == 40'040 + 3; }));
  ReplayOptions wanted = options();
  wanted.batch_messages_max = 20;
  std::stop_source stop;
  auto replayed = std::async(std::launch::async, [&] { return replay(wanted, stop.get_token()); });
  if (replayed.wait_for(std::chrono::seconds{60}) != std::future_status::ready) stop.request_stop();
  const ReplaySummary summary = replayed.get();
  EXPECT_EQ(summary.end, ReplaySummary::ReplayEnd::kComplete);
  EXPECT_EQ(summary.messages_read, 40'040U);
  EXPECT_TRUE(expected_.compare(*store_).none());
}

TEST_F(ReplayTest, BesideTheUpdaterWhateverHappensToRedisMeanwhile) {
  produce(5'000);
  testing::RunningUpdater::Options live;
  live.brokers = kafka->brokers();
  live.redis_address = redis_->address();
  live.topic = topic_;
  live.group_id = topic_;
  testing::RunningUpdater updater(live);
  std::jthread mishaps([&](const std::stop_token& stop) {
    for (int i = 0; !stop.stop_requested(); ++i) {
      if (i % 3 == 0) redis_->command({"SCRIPT", "FLUSH"});
      if (i % 5 == 0) redis_->command({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
      if (i % 20 == 7) redis_->command({"FLUSHALL"});
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
  });
  // A replay under a sanitizer takes so long that it meets far more mishaps.
  constexpr int kRounds = testing::kSanitized ? 2 : 5;
  for (int round = 0; round < kRounds; ++round) {
    std::stop_source done;
    std::jthread again([&, stop = done.get_token()] {
      while (!stop.stop_requested())
        EXPECT_EQ(replay(options()).end, ReplaySummary::ReplayEnd::kComplete);
    });
    produce(3'000);
    done.request_stop();
  }
  mishaps.request_stop();
  mishaps.join();
  ExpectedLedgers::Difference found;
  EXPECT_TRUE(testing::wait_until(
      [&] {
        found = expected_.compare(*store_);
        return found.none();
      },
      std::chrono::seconds{60}))
      << found.missing << " missing, " << found.surplus << " surplus\n"
      << updater.log();
  updater.stop();
  EXPECT_EQ(expected_.wrong_expiries(*redis_, kDefaultRetention), "");
}

TEST_F(ReplayTest, StopsAboveTheMemoryMarkAndGoesOnFromThere) {
  produce(20'000);
  ReplayOptions tight = options();
  tight.redis_bytes_max = 1;
  tight.batch_messages_max = 1'000;
  tight.collected_events_max = 1'000;
  const ReplaySummary stopped = replay(tight);
  EXPECT_EQ(stopped.end, ReplaySummary::ReplayEnd::kMemory);
  EXPECT_LT(stopped.messages_read, 20'000U);

  ReplayOptions rest = options();
  rest.resume = true;
  const ReplaySummary resumed = replay(rest);
  EXPECT_EQ(resumed.end, ReplaySummary::ReplayEnd::kComplete);
  EXPECT_EQ(stopped.messages_read + resumed.messages_read, 20'000U);
  EXPECT_TRUE(expected_.compare(*store_).none());
}

TEST_F(ReplayTest, ItsRateIsEvenFromTheBeginning) {
  produce(4'000);
  ReplayOptions wanted = options();
  constexpr double kRate = 2'000;
  wanted.messages_per_second = kRate;
  wanted.progress_interval = std::chrono::milliseconds{50};
  replay(wanted);
  ASSERT_GT(progress_.size(), 1U);
  for (const auto& at : progress_) {
    // 100 messages at a time, and at most a tenth of a second is made up for.
    const double allowed = kRate * (static_cast<double>(at.elapsed.count()) / 1000 + 0.2) + 100;
    EXPECT_LE(static_cast<double>(at.messages_read), allowed) << at.elapsed.count() << " ms";
  }
}

}  // namespace replay_kafka_test
}  // namespace fcap
