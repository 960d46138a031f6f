// One updater that reads two topics, whose partitions have the same numbers.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"
#include "tests/support/part.h"

namespace fcap {
namespace topics_kafka_test {

using testing::wait_until;

class UpdaterOfTwoTopics : public testing::UpdaterPipeline {
 protected:
  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    second_ = topic_ + ".second";
    kafka->create_topic(second_, kPartitions);
    more_topics_ = {second_};
  }
  // Three of four into the first topic, so that equal offsets mean different things.
  void produce_into_both(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const testing::MadeEvent event = maker_.next();
      producer_->send(i % 4 == 0 ? second_ : topic_, event.user_id, event.json());
      expected_.add(event);
    }
  }
  static updater::UpdaterOptions with_gaps() {
    updater::UpdaterOptions options;
    options.mark.gap_min = 1'000;
    return options;
  }

  std::string second_;
};

TEST_F(UpdaterOfTwoTopics, CountsCommitsAndMarksBoth) {
  produce_into_both(20'000);
  producer_->send(second_, "poison", "rubbish", 1);
  auto updater = start_updater(with_gaps());
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->metrics().dead_letters.value() == 1; }, kPatience));
  for (const int topic : {0, 1}) {
    const std::map<kafka::TopicPartition, std::int64_t> none_behind{
        {part(0, topic), 0}, {part(1, topic), 0}, {part(2, topic), 0}};
    EXPECT_TRUE(wait_until(
        [&] { return updater->lag(static_cast<std::size_t>(topic)).by_partition == none_behind; },
        kPatience));
  }
  EXPECT_EQ(updater->not_ready(), "");
  updater->stop();
  EXPECT_EQ(kafka->committed_sum(topic_, topic_, kPartitions), 15'000);
  EXPECT_EQ(kafka->committed_sum(topic_, second_, kPartitions), 5'001);
  EXPECT_NE(updater->log().find("partition 1 of topic 2, offset"), std::string::npos)
      << updater->log();

  auto again = start_updater(with_gaps());
  EXPECT_TRUE(wait_until([&] { return again->metrics().marks_written.value() >= 2 * kPartitions; },
                         kPatience));
  again->stop();
  EXPECT_EQ(again->metrics().messages.value(), 0U) << again->log();
}

TEST_F(UpdaterOfTwoTopics, FillsTheGapsOfBothWhileReadingGoesOn) {
  produce_into_both(40'000);
  auto updater = start_updater(with_gaps());
  expect_all_counted(*updater);
  redis_->command({"FLUSHALL"});
  produce_into_both(4'000);
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->metrics().gap_offsets.value() == 0; }, kPatience))
      << updater->log();
  EXPECT_GT(updater->metrics().gap_messages.value(), 0U) << updater->log();
  updater->stop();
  EXPECT_EQ(kafka->committed_sum(topic_, topic_, kPartitions), kafka->end_sum(topic_, kPartitions));
  EXPECT_EQ(kafka->committed_sum(topic_, second_, kPartitions),
            kafka->end_sum(second_, kPartitions));
}

}  // namespace topics_kafka_test
}  // namespace fcap
