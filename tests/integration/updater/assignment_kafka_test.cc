// Partitions that are lost and given back, and what else stands between an assignment and the
// messages of a partition.
#include <atomic>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>

#include "support/updater_pipeline.h"

namespace {

std::atomic<rd_kafka_t*> last_subscriber{nullptr};  // the updater's: nobody else subscribes

}  // namespace

// In front of librdkafka's own: it tells the tests which client the updater reads with.
extern "C" rd_kafka_resp_err_t rd_kafka_subscribe(rd_kafka_t* client,
                                                  const rd_kafka_topic_partition_list_t* topics) {
  static const auto real =
      reinterpret_cast<decltype(&rd_kafka_subscribe)>(dlsym(RTLD_NEXT, "rd_kafka_subscribe"));
  last_subscriber = client;
  return real(client, topics);
}

namespace fcap {
namespace assignment_kafka_test {

using testing::RunningUpdater;
using testing::wait_until;

class UpdaterAssignment : public testing::UpdaterPipeline {
 protected:
  void TearDown() override {
    if (kafka) kafka->thaw();
  }

  std::unique_ptr<RunningUpdater> start_member() {
    updater::UpdaterOptions options;
    options.consumer.connection.properties = {{"session.timeout.ms", "6000"},
                                              {"heartbeat.interval.ms", "500"}};
    return start_updater(options);
  }

  // The group gives the partitions up for lost, because no broker answers.
  void lose_the_assignment(const RunningUpdater& updater) {
    kafka->freeze();
    EXPECT_TRUE(
        wait_until([&] { return says_in_log(updater, "the assignment was lost"); }, kPatience))
        << updater.log();
    kafka->thaw();
  }

  // Kafka's client stops reading a partition, and nobody is told.
  void stop_reading(int partition) {
    const kafka::Ptr<rd_kafka_topic_partition_list_t> list(rd_kafka_topic_partition_list_new(1));
    rd_kafka_topic_partition_list_add(list.get(), topic_.c_str(), partition);
    ASSERT_EQ(rd_kafka_pause_partitions(last_subscriber, list.get()), RD_KAFKA_RESP_ERR_NO_ERROR);
    ASSERT_EQ(list->elems[0].err, RD_KAFKA_RESP_ERR_NO_ERROR);
  }

  static bool says_in_log(const RunningUpdater& updater, const std::string& text) {
    return updater.log().find(text) != std::string::npos;
  }
};

TEST_F(UpdaterAssignment, PartitionsThatWereLostWhilePausedAreReadAgain) {
  auto updater = start_member();
  produce(500);
  expect_all_counted(*updater);
  redis_->freeze();
  produce(500);
  producer_->flush();
  EXPECT_TRUE(
      wait_until([&] { return updater->metrics().paused_partitions.value() > 0; }, kPatience));
  lose_the_assignment(*updater);
  redis_->thaw();
  expect_all_counted(*updater);
}

TEST_F(UpdaterAssignment, PartitionsThatWereLostBeforeTheirMarksCouldBeReadAreReadLater) {
  produce(500);
  producer_->flush();
  redis_->freeze();
  auto updater = start_member();
  EXPECT_TRUE(
      wait_until([&] { return updater->metrics().paused_partitions.value() > 0; }, kPatience));
  lose_the_assignment(*updater);
  redis_->thaw();
  expect_all_counted(*updater);
}

TEST_F(UpdaterAssignment, APartitionThatKafkasClientHasStoppedReadingIsShownAndReadAgain) {
  auto updater = start_member();
  produce(500);
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience))
      << updater->not_ready();
  stop_reading(1);
  produce(500);
  producer_->flush();
  EXPECT_TRUE(
      wait_until([&] { return updater->metrics().unreadable_partitions.value() == 1; }, kPatience))
      << updater->log();
  EXPECT_TRUE(wait_until(
      [&] { return updater->not_ready().find("partition 1") != std::string::npos; }, kPatience))
      << updater->not_ready();
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience))
      << updater->not_ready();
}

}  // namespace assignment_kafka_test
}  // namespace fcap
