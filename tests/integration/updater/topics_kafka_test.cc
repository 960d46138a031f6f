// Two topics are read by two updaters. They may share a Redis.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace topics_kafka_test {

using testing::RunningUpdater;
using testing::wait_until;

class UpdatersOfTwoTopics : public testing::UpdaterPipeline {
 protected:
  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    second_ = topic_ + ".second";
    dead_topic_ = topic_ + ".dead";  // of both
    kafka->create_topic(second_, kPartitions);
  }
  // Three of four into the first topic, so that equal offsets mean different things.
  void produce_into_both(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const testing::MadeEvent event = maker_.next();
      producer_->send(i % 4 == 0 ? second_ : topic_, event.user_id, event.json());
      expected_.add(event);
    }
  }
  std::unique_ptr<RunningUpdater> start_updater_of(std::string topic) {
    updater::UpdaterOptions options;
    options.mark.gap_min = 1'000;
    const std::string first = std::exchange(topic_, std::move(topic));
    auto updater = start_updater(options);
    topic_ = first;
    return updater;
  }

  std::string second_;
};

TEST_F(UpdatersOfTwoTopics, CountInOneRedisWithMarksOfTheirOwn) {
  produce_into_both(20'000);
  auto first = start_updater_of(topic_);
  auto second = start_updater_of(second_);
  expect_all_counted(*first);
  EXPECT_TRUE(wait_until([&] { return first->lag().messages == 0 && second->lag().messages == 0; },
                         kPatience));
  expect_ready(*first);
  expect_ready(*second);
  first->stop();
  second->stop();
  EXPECT_EQ(kafka->committed_sum(topic_, topic_, kPartitions), 15'000);
  EXPECT_EQ(kafka->committed_sum(second_, second_, kPartitions), 5'000);

  for (const std::string& topic : {topic_, second_}) {
    auto again = start_updater_of(topic);
    EXPECT_TRUE(wait_until([&] { return again->metrics().marks_written.value() >= kPartitions; },
                           kPatience));
    again->stop();
    EXPECT_EQ(again->metrics().messages.value(), 0U) << again->log();
  }
}

TEST_F(UpdatersOfTwoTopics, FillTheirGapsWhereRedisLostBoth) {
  produce_into_both(40'000);
  auto first = start_updater_of(topic_);
  auto second = start_updater_of(second_);
  expect_all_counted(*first);
  redis_->command({"FLUSHALL"});
  produce_into_both(4'000);
  expect_all_counted(*first);
  for (RunningUpdater* const updater : {first.get(), second.get()}) {
    EXPECT_TRUE(wait_until([&] { return updater->metrics().gap_offsets.value() == 0; }, kPatience))
        << updater->log();
    EXPECT_GT(updater->metrics().gap_messages.value(), 0U) << updater->log();
    updater->stop();
  }
  EXPECT_EQ(kafka->committed_sum(topic_, topic_, kPartitions), kafka->end_sum(topic_, kPartitions));
  EXPECT_EQ(kafka->committed_sum(second_, second_, kPartitions),
            kafka->end_sum(second_, kPartitions));
}

}  // namespace topics_kafka_test
}  // namespace fcap
