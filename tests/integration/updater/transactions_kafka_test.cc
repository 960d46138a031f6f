// Topics that are written to in transactions: what the broker adds to mark their ends is neither
// lag nor a hole in the log.
#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace transactions_kafka_test {

using testing::KafkaProducer;
using testing::RunningUpdater;
using testing::wait_until;

class UpdaterTransactions : public testing::UpdaterPipeline {
 protected:
  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    producer_ = std::make_unique<KafkaProducer>(kafka->brokers(), topic_);
  }
  // Each partition's last offset is a mark of a transaction's end.
  void produce_in_transactions() {
    for (int i = 0; i < 3; ++i) {
      producer_->begin_transaction();
      produce(500);
      producer_->commit_transaction();
    }
    producer_->begin_transaction();
    for (int i = 0; i < 300; ++i) {
      const auto event = maker_.next();
      producer_->send(topic_, event.user_id, event.json(), i % kPartitions);
    }
    producer_->abort_transaction();
  }
  void expect_at_the_end(RunningUpdater& updater) {
    expect_all_counted(updater);
    EXPECT_TRUE(wait_until([&] { return updater.lag().messages == 0; }, kPatience))
        << updater.lag().messages.value_or(-1) << updater.not_ready() << updater.log();
    EXPECT_TRUE(
        wait_until([&] { return committed() == kafka->end_sum(topic_, kPartitions); }, kPatience))
        << committed() << " of " << kafka->end_sum(topic_, kPartitions);
    EXPECT_EQ(updater.metrics().offset_resets.value(), 0U) << updater.log();
  }
};

TEST_F(UpdaterTransactions, AtTheEndNothingLagsAndARestartFindsNothingMissing) {
  produce_in_transactions();
  auto updater = start_updater();
  expect_at_the_end(*updater);
  updater->stop();
  updater = start_updater();
  produce_in_transactions();
  expect_at_the_end(*updater);
  redis_->command({"FLUSHALL"});
  expect_at_the_end(*updater);
  EXPECT_GE(updater->metrics().rewinds.value(), 1U);
}

// What cannot be read before its transaction has ended is neither missing nor late.
TEST_F(UpdaterTransactions, OneThatStaysOpenIsNoTrouble) {
  produce_in_transactions();
  auto updater = start_updater();
  expect_at_the_end(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience))
      << updater->not_ready();
  producer_->begin_transaction();
  produce(500);
  producer_->flush();
  // For 15 s, longer than a silent partition waits before it is assigned again.
  expect_looks(*updater, 30);
  EXPECT_EQ(updater->log().find("has delivered no message"), std::string::npos) << updater->log();
  EXPECT_EQ(updater->lag().messages, 0) << "what cannot be read is not late";
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience))
      << updater->not_ready();
  producer_->commit_transaction();
  expect_at_the_end(*updater);
}

// As a version leaves them that takes the last message for the end.
TEST_F(UpdaterTransactions, AnOffsetThatHoldsNoMessageIsNoReset) {
  produce_in_transactions();
  auto updater = start_updater();
  expect_at_the_end(*updater);
  updater->stop();
  for (int partition = 0; partition < kPartitions; ++partition) {
    kafka->commit(topic_, topic_, partition, kafka->end(topic_, partition) - 1);
  }
  redis_->command({"FLUSHALL"});
  produce_in_transactions();
  updater = start_updater();
  expect_at_the_end(*updater);
  // Whatever comes of those offsets comes before what lies behind them.
  produce_in_transactions();
  expect_at_the_end(*updater);
}

}  // namespace transactions_kafka_test
}  // namespace fcap
