// Replay from a real Kafka into a real Redis: complete, repeatable, and gentle.
#include <cstdlib>
#include <sstream>

#include <gtest/gtest.h>

#include "events/event_decoder.h"
#include "redis/client.h"
#include "redis/redis_store.h"
#include "support/expected_ledgers.h"
#include "support/kafka_broker.h"
#include "support/redis_server.h"
#include "tests/seed.h"
#include "updater/replay/replay.h"

namespace fcap {
namespace {

using testing::EventMaker;
using testing::ExpectedLedgers;
using testing::KafkaBroker;
using testing::KafkaProducer;
using testing::MadeEvent;
using testing::RedisServer;
using updater::Replay;
using updater::ReplayOptions;
using updater::ReplaySummary;

constexpr int kPartitions = 3;
constexpr std::uint64_t kSeed = 20'240'608;  // unless FCAP_TEST_SEED says another

class ReplayTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (KafkaBroker::available() && RedisServer::available()) {
      kafka = std::make_unique<KafkaBroker>();
    }
  }
  static void TearDownTestSuite() { kafka.reset(); }

  void SetUp() override {
    if (!kafka) GTEST_SKIP() << "java, mvn, redis-server or redis-cli is missing";
    redis_ = std::make_unique<RedisServer>();
    topic_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    kafka->create_topic(topic_, kPartitions);
    producer_ = std::make_unique<KafkaProducer>(kafka->brokers());
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

  ReplaySummary replay(const ReplayOptions& wanted) {
    updater::ReplayParts parts;
    parts.store = store_.get();
    parts.decoder = decoder_.get();
    parts.memory = [this] { return updater::redis_memory(*client_, std::chrono::seconds{2}); };
    parts.progress = [this](const updater::ReplayProgress& p) { progress_.push_back(p); };
    auto made = Replay::create(wanted, parts);
    EXPECT_TRUE(made.ok()) << made.status().text();
    auto summary = made.value()->run({});
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

  static inline std::unique_ptr<KafkaBroker> kafka;
  std::unique_ptr<RedisServer> redis_;
  std::unique_ptr<KafkaProducer> producer_;
  std::shared_ptr<redis::Client> client_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<events::EventDecoder> decoder_;
  std::string topic_;
  EventMaker maker_{test_seed(kSeed), 500};
  ExpectedLedgers expected_;
  std::vector<updater::ReplayProgress> progress_;
};

TEST_F(ReplayTest, FillsAnEmptyRedisAndChangesNothingTheSecondTime) {
  produce(20'000);
  producer_->send(topic_, "x", "no event at all");
  producer_->send(topic_, "x",
                  R"({"user_id":"old","campaign_id":"c","timestamp":1000,"imp_id":"i"})");
  producer_->flush();
  const ReplaySummary first = replay(options());
  EXPECT_EQ(first.end, ReplaySummary::End::kComplete);
  EXPECT_EQ(first.messages_read, 20'002U);
  EXPECT_EQ(first.counts.added, 20'000U) << "seed " << test_seed(kSeed);
  EXPECT_EQ(first.rejected, 1U);
  EXPECT_EQ(first.too_old, 1U);
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

TEST_F(ReplayTest, StopsAboveTheMemoryMarkAndGoesOnFromThere) {
  produce(20'000);
  ReplayOptions tight = options();
  tight.redis_bytes_max = 1;
  tight.batch_messages_max = 1'000;
  const ReplaySummary stopped = replay(tight);
  EXPECT_EQ(stopped.end, ReplaySummary::End::kMemory);
  EXPECT_LT(stopped.messages_read, 20'000U);
  EXPECT_NE(updater::exit_code(stopped), 0);

  ReplayOptions rest = options();
  rest.resume = true;
  const ReplaySummary resumed = replay(rest);
  EXPECT_EQ(resumed.end, ReplaySummary::End::kComplete);
  EXPECT_EQ(stopped.messages_read + resumed.messages_read, 20'000U);
  EXPECT_TRUE(expected_.compare(*store_).none());
}

}  // namespace
}  // namespace fcap
