// Partitions that are lost and given back, and what else stands between an assignment and the first
// message of a partition.
#include <string>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace {

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

  /// The group gives the partitions up for lost, because no broker answers.
  void lose_the_assignment(const RunningUpdater& updater) {
    kafka->freeze();
    EXPECT_TRUE(
        wait_until([&] { return says_in_log(updater, "the assignment was lost"); }, kPatience))
        << updater.log();
    kafka->thaw();
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

}  // namespace
}  // namespace fcap
