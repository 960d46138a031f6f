// Logs that are not the ones that were read: recreated and truncated topics, another cluster.
#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace logs_kafka_test {

using std::chrono::milliseconds;
using testing::KafkaBroker;
using testing::KafkaProducer;
using testing::RunningUpdater;
using testing::wait_until;

class UpdaterLogs : public testing::UpdaterPipeline {
 protected:
  // Looks at the logs every second.
  static updater::UpdaterOptions watchful() {
    updater::UpdaterOptions options;
    options.mark.log_interval = milliseconds{1'000};
    options.mark.log_interval_min = milliseconds{200};
    return options;
  }

  void expect_said(RunningUpdater& updater, std::string_view text) {
    EXPECT_TRUE(
        wait_until([&] { return updater.log().find(text) != std::string::npos; }, kPatience))
        << updater.log();
  }
};

TEST_F(UpdaterLogs, ATopicRecreatedLongerUnderARunningUpdaterIsReadFromItsBeginning) {
  produce(1'500);
  auto updater = start_updater(watchful());
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return committed() == 1'500; }, kPatience));
  recreate_topic();
  produce(6'000);
  expect_all_counted(*updater);
  EXPECT_GT(updater->metrics().offset_resets.value(), 0U) << updater->log();
}

TEST_F(UpdaterLogs, ATopicRecreatedShorterUnderARunningUpdaterIsReadFromItsBeginning) {
  produce(6'000);
  auto updater = start_updater(watchful());
  expect_all_counted(*updater);
  recreate_topic();
  produce(1'500);
  expect_all_counted(*updater);
  EXPECT_GT(updater->metrics().offset_resets.value(), 0U) << updater->log();
}

TEST_F(UpdaterLogs, ATopicRecreatedLongerWhileItWasAwayIsReadFromItsBeginning) {
  produce(1'500);
  auto updater = start_updater(watchful());
  expect_all_counted(*updater);
  updater->stop();
  recreate_topic();
  // The group has read the new log, into another Redis: it has committed offsets.
  produce(6'000);
  producer_->flush();
  const testing::RedisServer elsewhere;
  redis_address_ = elsewhere.address();
  auto other = start_updater(watchful());
  EXPECT_TRUE(wait_until([&] { return committed() == 6'000; }, kPatience)) << other->log();
  other->stop();
  redis_address_.clear();
  updater = start_updater(watchful());
  expect_all_counted(*updater);
  expect_said(*updater, "this is not the log that was read");
}

TEST_F(UpdaterLogs, AnotherClustersTopicIsReadFromItsBeginning) {
  produce(1'500);
  auto updater = start_updater(watchful());
  expect_all_counted(*updater);
  updater->stop();
  KafkaBroker other;
  other.create_topic(topic_, kPartitions);
  other.create_topic(topic_ + ".dead", 1);
  const KafkaBroker& first = *kafka;
  ASSERT_NE(first.brokers(), other.brokers());
  producer_ = std::make_unique<KafkaProducer>(other.brokers());
  produce(6'000);
  producer_->flush();
  RunningUpdater::Options options;
  options.brokers = other.brokers();
  options.topic = topic_;
  options.group_id = topic_;
  options.updater = watchful();
  {
    const testing::RedisServer elsewhere;
    options.redis_address = elsewhere.address();
    RunningUpdater reader(options);
    EXPECT_TRUE(wait_until(
        [&] { return other.committed_sum(topic_, topic_, kPartitions) == 6'000; }, kPatience))
        << reader.log();
  }
  options.redis_address = redis_->address();
  RunningUpdater moved(options);
  expect_all_counted(moved);
  expect_said(moved, "this is not the log that was read");
}

TEST_F(UpdaterLogs, AfterRecordsWereDeletedReadingGoesOnUnverified) {
  produce(3'000);
  auto updater = start_updater(watchful());
  expect_all_counted(*updater);
  updater->stop();
  kafka->delete_records(topic_, kPartitions);
  updater = start_updater(watchful());
  produce(3'000);
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->metrics().log_unverified.value() == kPartitions; },
                         kPatience))
      << updater->log();
  EXPECT_EQ(updater->metrics().offset_resets.value(), 0U) << updater->log();
}

}  // namespace logs_kafka_test
}  // namespace fcap
