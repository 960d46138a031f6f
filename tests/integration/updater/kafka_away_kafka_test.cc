// The write path while Kafka is slow to answer, frozen or dead, and with very many partitions: its
// main loop goes on, and it says what it waits for.
#include <thread>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace kafka_away_kafka_test {

using std::chrono::milliseconds;
using testing::RunningUpdater;
using testing::wait_until;
using Clock = std::chrono::steady_clock;

class UpdaterKafkaAway : public testing::UpdaterPipeline {
 protected:
  void use_topic_of(int partitions) {
    topic_ += ".wide";
    kafka->create_topic(topic_, partitions);
    kafka->create_topic(topic_ + ".dead", 1);
  }
  void TearDown() override {
    if (kafka) kafka->thaw();
  }
  static bool says(const RunningUpdater& updater, const std::string& text) {
    return wait_until([&] { return updater.not_ready().find(text) != std::string::npos; },
                      kPatience);
  }
};

TEST_F(UpdaterKafkaAway, ThreeHundredPartitionsAreTakenOverTogether) {
  use_topic_of(300);
  produce(6'000);
  producer_->flush();
  auto updater = start_updater();
  expect_all_counted(*updater);  // within a minute, not after a wait for each of them
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience))
      << updater->not_ready();
  redis_->command({"FLUSHALL"});
  expect_all_counted(*updater);
  EXPECT_GE(updater->metrics().rewinds.value(), 300U);
  EXPECT_TRUE(wait_until([&] { return updater->healthy(); }, kPatience));
}

TEST_F(UpdaterKafkaAway, AFrozenKafkaAndAnEmptiedRedisHoldNothingUp) {
  use_topic_of(12);
  produce(3'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  kafka->freeze();
  redis_->command({"FLUSHALL"});
  expect_looks(*updater, 40);  // the main loop goes on
  EXPECT_TRUE(says(*updater, "no broker has answered for")) << updater->not_ready();
  EXPECT_TRUE(
      wait_until([&] { return updater->metrics().unreadable_partitions.value() == 12; }, kPatience))
      << updater->not_ready();
  const std::string why = "it waits for Kafka to say where its reading begins";
  EXPECT_TRUE(says(*updater, "no progress for")) << updater->not_ready();
  EXPECT_TRUE(says(*updater, why)) << updater->not_ready();
  expect_said(*updater, why);
  kafka->thaw();
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience))
      << updater->not_ready();
}

// Everything else answers, so that nothing else tells why nothing is counted.
TEST_F(UpdaterKafkaAway, AGroupWithoutACoordinatorIsNamedUntilItHasOne) {
  const std::vector<std::string> too_few_brokers = {"offsets.topic.replication.factor=3"};
  testing::KafkaBroker broker({}, too_few_brokers);
  broker.create_topic(topic_, kPartitions);
  testing::KafkaProducer producer(broker.brokers());
  producer.send(topic_, "u1", maker_.next().json());
  producer.flush();
  RunningUpdater::Options options;
  options.brokers = broker.brokers();
  options.redis_address = redis_->address();
  options.topic = topic_;
  options.group_id = topic_;
  RunningUpdater updater(options);

  const std::string what = "the coordinator of group " + topic_ + " does not answer";
  const auto says_so = [&] {
    const std::string why = updater.not_ready();
    return why.find("no partition has been assigned for ") != std::string::npos &&
           why.find(what) != std::string::npos;
  };
  EXPECT_TRUE(wait_until(says_so, kPatience)) << updater.not_ready();
  expect_said(updater, what);
  EXPECT_TRUE(updater.healthy());

  broker.stop();
  broker.start({}, {"offsets.topic.replication.factor=1"});
  EXPECT_TRUE(wait_until([&] { return updater.not_ready().empty(); }, kPatience))
      << updater.not_ready();
  EXPECT_TRUE(wait_until([&] { return updater.metrics().events_written.value() == 1; }, kPatience));
  EXPECT_TRUE(wait_until([&] {
    return updater.log().find("progress again, after") != std::string::npos;
  })) << updater.log();
}

TEST_F(UpdaterKafkaAway, AFrozenKafkaAndAnEmptiedRedisDoNotKeepItFromStopping) {
  produce(3'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  kafka->freeze();
  redis_->command({"FLUSHALL"});
  EXPECT_TRUE(wait_until([&] { return updater->metrics().mark_failures.value() > 0; }, kPatience));
  const auto begun = Clock::now();
  updater->stop();
  EXPECT_LT(Clock::now() - begun, kPatience) << updater->log();
}

}  // namespace kafka_away_kafka_test
}  // namespace fcap
