// What the updater says of itself while one of the servers is away, wrong or frozen: lag, the age
// of what waits, whether it is connected and whether it is ready.
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "support/updater_pipeline.h"

namespace fcap {
namespace signals_kafka_test {

using std::chrono::milliseconds;
using testing::KafkaBroker;
using testing::RunningUpdater;
using testing::wait_until;

class UpdaterSignals : public testing::UpdaterPipeline {
 protected:
  static bool says(const RunningUpdater& updater, const std::string& text) {
    return wait_until([&] { return updater.not_ready().find(text) != std::string::npos; },
                      kPatience);
  }
  static int count_of(const std::string& text, std::string_view word) {
    int count = 0;
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
    return count;
  }
  static bool lags(const RunningUpdater& updater, std::optional<std::int64_t> messages) {
    return wait_until([&] { return updater.lag().messages == messages; }, kPatience);
  }
  static std::string lag_of(const RunningUpdater& updater) {
    const auto lag = updater.lag();
    return (lag.messages ? std::to_string(*lag.messages) : "unknown") + "\n" + updater.not_ready() +
           updater.log();
  }
};

TEST_F(UpdaterSignals, AFrozenRedisShowsTheTrueLagWhileItGrows) {
  auto updater = start_updater();
  produce(100);
  expect_all_counted(*updater);
  EXPECT_TRUE(lags(*updater, 0)) << lag_of(*updater);
  EXPECT_EQ(updater->lag().oldest, std::nullopt);
  redis_->freeze();
  const auto before = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
  produce(20);
  producer_->flush();
  EXPECT_TRUE(lags(*updater, 20)) << lag_of(*updater);
  EXPECT_TRUE(
      wait_until([&] { return updater->metrics().paused_partitions.value() > 0; }, kPatience));
  produce(1'000);
  producer_->flush();
  EXPECT_TRUE(lags(*updater, 1'020)) << lag_of(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->lag().oldest.has_value(); }, kPatience));
  const auto oldest = updater->lag().oldest.value_or(Instant{});
  EXPECT_GE(oldest, before - std::chrono::seconds{1});
  EXPECT_LE(oldest, before + std::chrono::seconds{60});
  EXPECT_TRUE(says(*updater, "Redis does not accept events: ")) << lag_of(*updater);
  EXPECT_EQ(updater->log().find(":{"), std::string::npos) << "no user is to blame";
  EXPECT_TRUE(updater->kafka_connected());
  redis_->thaw();
  expect_all_counted(*updater);
  EXPECT_TRUE(lags(*updater, 0)) << lag_of(*updater);
  expect_ready(*updater);
}

TEST_F(UpdaterSignals, AWrongRedisAddressShowsThatNothingIsCounted) {
  produce(25);
  producer_->flush();
  redis_address_ = "127.0.0.1:1";
  auto updater = start_updater();
  EXPECT_TRUE(lags(*updater, 25)) << lag_of(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->lag().oldest.has_value(); }, kPatience));
  EXPECT_TRUE(says(*updater, "127.0.0.1:1")) << updater->not_ready();
}

TEST_F(UpdaterSignals, AWrongTopicIsNamedAndItsLagIsUnknown) {
  dead_topic_ = topic_ + ".dead";
  topic_ += ".missing";
  auto updater = start_updater();
  EXPECT_TRUE(says(*updater, "kafka.topic: the topic " + topic_ + " does not exist"))
      << updater->not_ready();
  EXPECT_TRUE(updater->kafka_connected());
  EXPECT_EQ(updater->lag().messages, std::nullopt);
  // The consumer is told of it as well, and leaves it to this one line.
  EXPECT_TRUE(wait_until([&] { return updater->log().find("nknown topic") != std::string::npos; },
                         kPatience))
      << updater->log();
  expect_looks(*updater);
  EXPECT_EQ(count_of(updater->not_ready(), topic_), 1) << updater->not_ready();
}

TEST_F(UpdaterSignals, AMissingDeadLetterTopicIsNamedBeforeTheFirstDeadLetter) {
  dead_topic_ = topic_ + ".missing";
  auto updater = start_updater();
  EXPECT_TRUE(
      says(*updater, "kafka.dead_letter_topic: the topic " + dead_topic_ + " does not exist"))
      << updater->not_ready();
  kafka->create_topic(dead_topic_, 1);
  expect_ready(*updater);
}

TEST_F(UpdaterSignals, WhatWaitsForADeadLetterIsLag) {
  dead_topic_ = topic_ + ".missing";
  auto updater = start_updater();
  producer_->send(topic_, "somebody", "no event at all", 0);
  producer_->flush();
  EXPECT_TRUE(says(*updater, "partition 0 waits")) << updater->not_ready();
  for (int i = 0; i < 2; ++i) {
    const auto event = maker_.next();
    producer_->send(topic_, event.user_id, event.json(), 0);
  }
  producer_->flush();
  EXPECT_TRUE(lags(*updater, 3)) << lag_of(*updater);
  EXPECT_EQ(updater->lag().by_partition.at(0), 3);
}

TEST_F(UpdaterSignals, NearlyEverythingRejectedIsNotReadyAndTheLogHasASample) {
  auto updater = start_updater();
  expect_ready(*updater);
  for (int i = 0; i < 2'000; ++i) producer_->send(topic_, "k", "\x01\x02 no JSON", i % kPartitions);
  producer_->flush();
  EXPECT_TRUE(says(*updater, "nearly all messages are rejected")) << updater->not_ready();
  expect_said(*updater, "rejected as not_json");
  EXPECT_TRUE(wait_until([&] { return committed() == 2'000; }, kPatience));
}

class UpdaterSignalsBroker : public UpdaterSignals {
 protected:
  std::unique_ptr<RunningUpdater> start(const std::string& brokers) {
    RunningUpdater::Options all;
    all.brokers = brokers;
    all.redis_address = redis_->address();
    all.topic = topic_;
    all.dead_letter_topic = topic_ + ".dead";
    all.group_id = topic_;
    return std::make_unique<RunningUpdater>(all);
  }
  void expect_unknown(RunningUpdater& updater) {
    EXPECT_TRUE(says(updater, "no broker has answered for")) << updater.not_ready();
    EXPECT_FALSE(updater.kafka_connected());
    EXPECT_EQ(updater.lag().messages, std::nullopt);
    EXPECT_TRUE(updater.lag().by_partition.empty());
    // Whoever else has noticed it leaves it to this one line.
    expect_looks(updater);
    const std::string why = updater.not_ready();
    EXPECT_EQ(count_of(why, "answered"), 1) << why;
  }
};

TEST_F(UpdaterSignalsBroker, AWrongBrokerIsNamedWithWhatTheNetworkSaid) {
  auto updater = start("127.0.0.1:1");
  expect_unknown(*updater);
  EXPECT_NE(updater->not_ready().find("127.0.0.1:1"), std::string::npos);
  EXPECT_NE(updater->not_ready().find("refused"), std::string::npos) << updater->not_ready();
}

TEST_F(UpdaterSignalsBroker, AFrozenAndAKilledBrokerMakeTheLagUnknownAndItIsNotReady) {
  KafkaBroker own;
  own.create_topic(topic_, kPartitions);
  own.create_topic(topic_ + ".dead", 1);
  auto updater = start(own.brokers());
  expect_ready(*updater);
  EXPECT_TRUE(lags(*updater, 0)) << lag_of(*updater);
  EXPECT_TRUE(updater->kafka_connected());
  own.freeze();
  expect_unknown(*updater);
  own.thaw();
  expect_ready(*updater);
  EXPECT_TRUE(lags(*updater, 0)) << lag_of(*updater);
  own.kill();
  expect_unknown(*updater);
}

}  // namespace signals_kafka_test
}  // namespace fcap
