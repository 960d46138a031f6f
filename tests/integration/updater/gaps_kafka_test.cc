// Losses that are too large to be read again in line: they become gaps, which are filled while
// later messages are counted.
#include <string>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace gaps_kafka_test {

using testing::RunningUpdater;
using testing::wait_until;

class UpdaterGaps : public testing::UpdaterPipeline {
 protected:
  // A loss of a thousand messages is a gap.
  static updater::UpdaterOptions with_gaps() {
    updater::UpdaterOptions options;
    options.mark.gap_min = 1'000;
    options.mark.piece_offsets_max = 1'500;
    return options;
  }

  void expect_filling_begins(RunningUpdater& updater) {
    EXPECT_TRUE(wait_until([&] { return updater.metrics().gap_messages.value() > 0; }, kPatience))
        << updater.log();
  }

  void expect_gaps_filled(RunningUpdater& updater) {
    EXPECT_TRUE(wait_until([&] { return updater.metrics().gap_offsets.value() == 0; }, kPatience))
        << updater.metrics().gap_offsets.value() << "\n"
        << updater.log();
    EXPECT_GT(updater.metrics().gap_messages.value(), 0U) << updater.log();
    const auto says_so = [&] {
      return updater.log().find("its gap is filled") != std::string::npos;
    };
    EXPECT_TRUE(wait_until(says_so, kPatience)) << updater.log();
  }
};

TEST_F(UpdaterGaps, AnEmptiedRedisIsFilledWhileReadingGoesOn) {
  produce(30'000);
  auto updater = start_updater(with_gaps());
  expect_all_counted(*updater);
  redis_->command({"FLUSHALL"});
  produce(5'000);
  expect_all_counted(*updater);
  expect_gaps_filled(*updater);
  // Nothing but what was under way at the loss was read in its place: at most everything since,
  // and of each partition less than makes a gap.
  EXPECT_LT(updater->metrics().rewound_messages.value(), 5'000U + kPartitions * 1'000U);
  updater->stop();
  EXPECT_EQ(committed(), kafka->end_sum(topic_, kPartitions));
}

TEST_F(UpdaterGaps, ARedisEmptiedWhileNobodyRanIsFilledToo) {
  produce(30'000);
  auto updater = start_updater(with_gaps());
  expect_all_counted(*updater);
  updater->stop();
  redis_->command({"FLUSHALL"});
  produce(5'000);
  updater = start_updater(with_gaps());
  expect_all_counted(*updater);
  expect_gaps_filled(*updater);
}

TEST_F(UpdaterGaps, ASecondLossAndARestartWhileAGapIsOpenLoseNothing) {
  produce(60'000);
  auto updater = start_updater(with_gaps());
  expect_all_counted(*updater);
  redis_->command({"FLUSHALL"});
  expect_filling_begins(*updater);
  redis_->command({"FLUSHALL"});
  produce(5'000);
  updater->stop();  // whatever is filled by now
  updater = start_updater(with_gaps());
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->metrics().gap_offsets.value() == 0; }, kPatience))
      << updater->log();
}

TEST_F(UpdaterGaps, ARedisRestoredFromAnOldSnapshotIsFilled) {
  auto updater = start_updater(with_gaps());
  produce(10'000);
  expect_all_counted(*updater);
  EXPECT_EQ(redis_->command({"SAVE"}), "OK");
  produce(30'000);
  expect_all_counted(*updater);
  redis_->kill();
  produce(5'000);
  redis_->start();  // with the snapshot: 30,000 events are gone
  expect_all_counted(*updater);
  expect_gaps_filled(*updater);
}

TEST_F(UpdaterGaps, AnUpdaterThatKnowsNoGapsReadsThemInLine) {
  produce(60'000);
  auto updater = start_updater(with_gaps());
  expect_all_counted(*updater);
  redis_->command({"FLUSHALL"});
  expect_filling_begins(*updater);
  updater->stop();
  updater = start_updater();
  expect_all_counted(*updater);
  EXPECT_EQ(updater->metrics().gap_messages.value(), 0U);
}

}  // namespace gaps_kafka_test
}  // namespace fcap
