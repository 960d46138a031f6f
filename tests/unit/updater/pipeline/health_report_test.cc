#include "updater/pipeline/health_report.h"

#include <memory>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/mock_cluster.h"
#include "tests/unit/updater/support/partition_set_fixture.h"

namespace fcap::updater {
namespace health_report_test {

using namespace std::chrono_literals;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::PartitionSetFixture;

struct NoTopic final : DeadLetterSink {
  void send(const DeadLetter&, DeadLetterCompletion& done) noexcept override {
    done.delivered(Delivery::kFailed, "Unknown topic\nand more");
  }
};

/// Ten messages wait in one partition, which is read from 3 on.
class HealthReportTest : public PartitionSetFixture {
 protected:
  void SetUp() override {
    log_.start = 0;
    kafka::ConsumerOptions options;
    options.connection.brokers = cluster_.brokers();
    options.topic = "events";
    auto consumer = kafka::Consumer::create(options, {}, {});
    ASSERT_TRUE(consumer.ok()) << consumer.status().text();
    consumer_ = std::move(consumer).value();
    TopicWatchOptions watched;
    watched.connection = options.connection;
    watched.topic = "events";
    watched.group_id = "g";
    watched.interval = 50ms;
    watched.silence_max = 1h;
    auto watch = TopicWatch::create(watched, {});
    ASSERT_TRUE(watch.ok()) << watch.status().text();
    watch_ = std::move(watch).value();
    reading_ = std::make_unique<TopicReading>(*consumer_, set_, 3s, metrics_);
    report_ = std::make_unique<HealthReport>(HealthReportParts{.health = &health_,
                                                               .consumer = consumer_.get(),
                                                               .watch = watch_.get(),
                                                               .partitions = &set_,
                                                               .reading = reading_.get(),
                                                               .writer = &writer_,
                                                               .letters = &letters_,
                                                               .rejections = &rejections_,
                                                               .clocks = &clocks_},
                                             "events", metrics_, LogCallback{});
  }

  // The partition's end is known, and nothing has been taken.
  void begin_reading() {
    set_mark(3);
    assign();
    reading_->resume(now_);
    const std::vector<PartitionDone> done{{0, 3}};
    watch_->set_done(done, true);
    const auto until = HealthReport::Clock::now() + kafka::kPatience;
    while (watch_->lag(HealthReport::Clock::now()).by_partition.empty()) {
      ASSERT_LT(HealthReport::Clock::now(), until);
      std::this_thread::sleep_for(1ms);
    }
    now_ = HealthReport::Clock::now();
    report_->look(now_, true);
    now_ += 11s;
  }

  std::string not_ready(bool joined = true) {
    report_->beat(now_, joined);
    report_->look(now_, joined);
    std::string why;
    (void)health_.ready(now_, why);
    return why;
  }

  void submit_event() {
    Coalescer coalescer({});
    events::Event event;
    event.user_id = "u";
    event.time = instant_from_ms(1'700'000'000'000);
    coalescer.add(event);
    Batch& batch = writer_.take();
    coalescer.finish(batch.writes);
    writer_.submit(batch);
  }

  void put_letter(std::int32_t partition) {
    DeadLetter letter;
    letter.partition = partition;
    letters_.put(std::move(letter), set_.generation(partition));
    std::vector<DeadLetterBox::LetterPosition> arrived;
    letters_.tick(
        now_, [](std::int32_t, std::uint64_t) { return true; }, arrived);
  }

  kafka::Cluster cluster_{10};
  std::optional<std::chrono::milliseconds> redis_ahead_;
  NoTopic no_topic_;
  Health health_{1min};
  std::unique_ptr<kafka::Consumer> consumer_;
  std::unique_ptr<TopicWatch> watch_;
  BatchWriter writer_{store_, nullptr, {}, metrics_, {}};
  DeadLetterBox letters_{&no_topic_, {}, metrics_, {}};
  RejectionWatch rejections_{{.share_max = 0.9, .messages_min = 1}, {}};
  EventClocks clocks_{[this] { return redis_ahead_; }, 5min, {}};
  std::unique_ptr<TopicReading> reading_;
  std::unique_ptr<HealthReport> report_;
};

TEST_F(HealthReportTest, SaysWhatEachPartHasTroubleWith) {
  EXPECT_THAT(not_ready(false), HasSubstr("no partition is assigned"));
  EXPECT_EQ(not_ready(), "");
  redis_ahead_ = 1h;
  (void)clocks_.compare();
  put_letter(0);
  rejections_.rejected({0, 7}, {events::Rejection::kNotJson, {}}, now_);
  rejections_.taken(1, now_);
  const std::string why = not_ready();
  EXPECT_THAT(why, HasSubstr("the clock of Redis is 3600 s ahead"));
  EXPECT_THAT(why, HasSubstr("Unknown topic"));
  EXPECT_THAT(why, HasSubstr("1 of 1"));
  redis_ahead_ = 0s;
  (void)clocks_.compare();
  EXPECT_THAT(not_ready(), Not(HasSubstr("clock")));
}

TEST_F(HealthReportTest, SaysWhatRedisRefuses) {
  store_.next_fault = [] { return testing::FaultStore::Fault::kRefused; };
  assign();
  EXPECT_THAT(not_ready(), HasSubstr("the mark cannot be read: "));
  submit_event();
  std::vector<Batch*> done;
  writer_.tick(now_, done);
  const std::string why = not_ready();
  EXPECT_THAT(why, HasSubstr("the mark cannot be read: "));
  EXPECT_THAT(why, HasSubstr("Redis does not accept events: "));
  EXPECT_THAT(why, HasSubstr("NOPERM this user may not"));
  store_.next_fault = nullptr;
  settle();
  while (done.empty()) writer_.tick(now_ += 1s, done);
  EXPECT_EQ(not_ready(), "");
}

TEST_F(HealthReportTest, APartitionThatKafkaDoesNotGiveIsNamed) {
  set_mark(3);
  assign();
  consumer_->note_unreadable(0, "has no leader");
  EXPECT_THAT(not_ready(), HasSubstr("partition 0: has no leader"));
  EXPECT_EQ(metrics_.unreadable_partitions.value(), 1);
  consumer_->note_unreadable(kafka::Consumer::kTopic, "may not be read");
  EXPECT_THAT(not_ready(), HasSubstr("topic events: may not be read"));
}

TEST_F(HealthReportTest, AMemberThatGetsNoPartitionSaysWhatTheGroupSays) {
  report_->look(now_, false);
  now_ += 11s;
  EXPECT_THAT(not_ready(false), HasSubstr("no partition has been assigned for 11 s: "));
  consumer_->note_unreadable(kafka::Consumer::kTopic, "may not be read");
  EXPECT_THAT(not_ready(false), HasSubstr("assigned for 11 s: may not be read"));
}

// What is nearest to the partition comes first, and what is in flight before what is not read
// because of it.
TEST_F(HealthReportTest, APartitionThatStandsStillSaysWhatItWaitsFor) {
  begin_reading();
  EXPECT_THAT(not_ready(), HasSubstr("partition 0: no progress for 11 s although 7 messages wait: "
                                     "Kafka delivers nothing of it"));
  consumer_->note_unreadable(0, "has no leader");
  EXPECT_THAT(not_ready(), HasSubstr("messages wait: has no leader"));

  put_letter(1);
  EXPECT_THAT(not_ready(), HasSubstr("messages wait: has no leader"));
  store_.immediate = false;
  submit_event();
  EXPECT_THAT(not_ready(), HasSubstr("Redis has not acknowledged the events"));

  put_letter(0);
  // In one line.
  EXPECT_THAT(not_ready(), EndsWith("messages wait: partition 0 waits for its dead letter of "
                                    "offset 0: Unknown topic\n"));
  reading_->await_decoder(0, now_);
  EXPECT_THAT(not_ready(), HasSubstr("its next message cannot be decoded yet"));
  store_.run_all();
}

}  // namespace health_report_test
}  // namespace fcap::updater
