// The write path from a real Kafka into a real Redis, in this process: what is counted, what is
// committed, and what happens to both when a server misbehaves.
#include <cstdint>
#include <map>
#include <optional>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace pipeline_kafka_test {

using std::chrono::milliseconds;
using testing::RunningUpdater;
using testing::UpdaterPipeline;
using testing::wait_until;

TEST_F(UpdaterPipeline, CountsEveryEventOnceAndCommitsBehindIt) {
  produce(30'000);
  producer_->flush();
  auto updater = start_updater();
  produce(30'000);
  expect_all_counted(*updater);
  const std::map<std::int32_t, std::int64_t> none_behind{{0, 0}, {1, 0}, {2, 0}};
  EXPECT_TRUE(wait_until(
      [&] {
        const auto lag = updater->lag();
        return lag.by_partition == none_behind && lag.messages == 0;
      },
      kPatience));
  updater->stop();
  EXPECT_TRUE(updater->lag().by_partition.empty()) << "given up with the partitions";
  EXPECT_EQ(updater->lag().messages, std::nullopt);
  EXPECT_EQ(committed(), 60'000);
  EXPECT_EQ(updater->metrics().events_written.value(), 60'000U);
  EXPECT_EQ(updater->metrics().rewinds.value(), 0U) << updater->log();

  // A second run has nothing to do, and finds its marks as it left them.
  auto again = start_updater();
  EXPECT_TRUE(
      wait_until([&] { return again->metrics().marks_written.value() >= kPartitions; }, kPatience));
  again->stop();
  EXPECT_EQ(again->metrics().messages.value(), 0U) << again->log();
}

TEST_F(UpdaterPipeline, PoisonBetweenGoodMessagesIsSetAsideWithItsPositionAndReason) {
  const std::vector<std::pair<std::string, std::string>> poison = {
      {"", "not_json"},
      {"{\"user_id\":\"u\"", "not_json"},
      {std::string("\xff\x00\x01", 3), "not_json"},
      {"[1,2]", "not_an_object"},
      {R"({"user_id":"u","campaign_id":"c","imp_id":"i"})", "missing_member"},
      {R"({"user_id":7,"campaign_id":"c","timestamp":1700000000,"imp_id":"i"})", "wrong_type"},
      {R"({"user_id":"u","campaign_id":"c","timestamp":32503680000,"imp_id":"i"})", "in_future"},
      {R"({"user_id":")" + std::string(300, 'x') +
           R"(","campaign_id":"c","timestamp":1700000000,"imp_id":"i"})",
       "id_too_long"},
      {std::string(100'000, 'x'), "too_large"},
  };
  for (const auto& [payload, reason] : poison) {
    produce(500);
    producer_->send(topic_, "poison-" + reason, payload, 1);
  }
  // Nobody's and old: neither kept nor set aside.
  producer_->send(topic_, "", R"({"user_id":"","campaign_id":"c","timestamp":1,"imp_id":"i"})");
  producer_->send(topic_, "",
                  R"({"user_id":"00000000-0000-0000-0000-000000000000","campaign_id":"c",)"
                  R"("timestamp":1700000000,"imp_id":"i"})");
  producer_->send(topic_, "",
                  R"({"user_id":"old","campaign_id":"c","timestamp":1000,"imp_id":"i"})");
  auto updater = start_updater();
  expect_all_counted(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->metrics().events_too_old.value() >= 1; }));
  updater->stop();

  EXPECT_EQ(committed(), kafka->end_sum(topic_, kPartitions));
  EXPECT_EQ(updater->metrics().events_null_user.value(), 2U);
  EXPECT_EQ(redis_->command({"EXISTS", "fcap:{old}", "fcap:{}"}), "0");
  std::map<std::pair<std::string, std::string>, int> wanted;
  for (const auto& [payload, reason] : poison) ++wanted[{payload, reason}];
  std::map<std::pair<std::string, std::string>, int> found;
  for (const auto& letter : kafka->read_letters(topic_ + ".dead")) {
    ++found[{letter.value, letter.headers.at("fcap.reason")}];
    EXPECT_EQ(letter.key, "poison-" + letter.headers.at("fcap.reason"));
    EXPECT_EQ(letter.headers.at("fcap.topic"), topic_);
    EXPECT_EQ(letter.headers.at("fcap.partition"), "1");
    EXPECT_FALSE(letter.headers.at("fcap.offset").empty());
  }
  EXPECT_EQ(found, wanted);
}

TEST_F(UpdaterPipeline, AnEmptiedRedisIsFilledAgainWithoutAnOperator) {
  auto updater = start_updater();
  for (int i = 0; i < 3; ++i) {
    produce(10'000);
    producer_->flush();
    EXPECT_TRUE(
        wait_until([&] { return updater->metrics().marks_written.value() > 3; }, kPatience));
    redis_->command({"FLUSHALL"});
  }
  produce(1'000);
  expect_all_counted(*updater);
  EXPECT_GE(updater->metrics().mark_losses.value(), 1U);
}

TEST_F(UpdaterPipeline, AnIdleTopicIsFilledAgainToo) {
  produce(5'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  redis_->command({"FLUSHALL"});
  expect_all_counted(*updater);
}

TEST_F(UpdaterPipeline, ARedisRestoredFromAnOldSnapshotCatchesUp) {
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  EXPECT_EQ(redis_->command({"SAVE"}), "OK");
  produce(20'000);
  expect_all_counted(*updater);
  redis_->kill();
  produce(5'000);
  redis_->start();  // with the snapshot: 20,000 events are gone
  expect_all_counted(*updater);
  EXPECT_GE(updater->metrics().rewinds.value(), 1U);
}

TEST_F(UpdaterPipeline, AFrozenRedisHoldsEverythingUpAndLosesNothing) {
  updater::UpdaterOptions options;
  options.write.deadline = milliseconds{300};
  options.mark.deadline = milliseconds{300};
  options.consumer.connection.properties = {{"max.poll.interval.ms", "10000"},
                                            {"session.timeout.ms", "10000"},
                                            {"heartbeat.interval.ms", "1000"}};
  auto updater = start_updater(options);
  produce(10'000);
  expect_all_counted(*updater);
  const auto rebalances = updater->metrics().rebalances.value();
  redis_->freeze();
  produce(20'000);
  producer_->flush();
  EXPECT_TRUE(wait_until([&] { return updater->metrics().paused_partitions.value() > 0; }))
      << updater->log();
  // Longer than max.poll.interval: an updater that did not poll would be thrown out.
  std::this_thread::sleep_for(std::chrono::seconds{13});
  EXPECT_LE(committed(), 10'000);
  redis_->thaw();
  expect_all_counted(*updater);
  EXPECT_EQ(updater->metrics().rebalances.value(), rebalances) << updater->log();
  EXPECT_TRUE(wait_until([&] { return updater->metrics().paused_partitions.value() == 0; }));
}

TEST_F(UpdaterPipeline, ConsumersComeAndGoUnderLoad) {
  std::vector<std::unique_ptr<RunningUpdater>> updaters;
  updaters.push_back(start_updater());
  for (int round = 0; round < 6; ++round) {
    produce(5'000);
    if (round % 2 == 0) {
      updaters.push_back(start_updater());
      EXPECT_TRUE(wait_until(
          [&] { return updaters.back()->metrics().assigned_partitions.value() > 0; }, kPatience));
    } else {
      updaters.front()->stop();
      updaters.erase(updaters.begin());
    }
  }
  expect_all_counted(*updaters.front());
  for (auto& updater : updaters) updater->stop();
  EXPECT_EQ(committed(), 30'000);
}

}  // namespace pipeline_kafka_test
}  // namespace fcap
