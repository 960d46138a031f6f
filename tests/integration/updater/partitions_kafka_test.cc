// Partitions that are added to the topic of a running updater.
#include <chrono>
#include <cstdio>
#include <memory>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace partitions_kafka_test {

using Clock = std::chrono::steady_clock;
using testing::wait_until;

class UpdaterOfAGrowingTopic : public testing::UpdaterPipeline {
 protected:
  static constexpr int kBefore = 2;
  static constexpr int kAfter = 4;

  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    dead_topic_ = topic_ + ".dead";
    topic_ += ".grows";
    kafka->create_topic(topic_, kBefore);
  }

  static double seconds_since(Clock::time_point then) {
    return std::chrono::duration<double>(Clock::now() - then).count();
  }
};

// A client of the group that began at the ends of partitions without a committed offset would lose
// what was written before it had heard of them.
TEST_F(UpdaterOfAGrowingTopic, ReadsPartitionsThatAreAddedUnderLoadFromTheirBeginning) {
  updater::UpdaterOptions options;
  options.consumer.offset_reset = "latest";
  auto updater = start_updater(options);
  produce(1'000);
  expect_all_counted(*updater);

  const auto began = Clock::now();
  kafka->add_partitions(topic_, kAfter);
  // One that knows of them: by their keys, half of its messages go there.
  producer_ = std::make_unique<testing::KafkaProducer>(kafka->brokers());
  const auto produce_some = [this] {
    produce(100);
    producer_->flush();
  };
  produce_some();
  for (int added = kBefore; added < kAfter; ++added) EXPECT_GT(kafka->end(topic_, added), 0);

  double unknown = 0;  // for how long it has said that nothing is left, although it did not know
  const auto assigned = [&] { return updater->metrics().assigned_partitions.value() == kAfter; };
  const bool found = wait_until(
      [&] {
        produce_some();
        if (updater->not_ready().empty() && updater->lag().messages == 0 && !assigned()) {
          unknown = seconds_since(began);
        }
        return assigned();
      },
      kPatience);
  EXPECT_TRUE(found) << updater->log();
  const double known = seconds_since(began);
  expect_all_counted(*updater);
  std::printf(
      "the added partitions were assigned after %.1f s and read after %.1f s; the updater was "
      "ready "
      "with a lag of 0 without them until %.1f s\n",
      known, seconds_since(began), unknown);
  EXPECT_EQ(updater->metrics().offset_resets.value(), 0U);
}

}  // namespace partitions_kafka_test
}  // namespace fcap
