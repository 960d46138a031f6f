#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "support/expected_ledgers.h"
#include "support/kafka_test.h"
#include "support/process.h"
#include "support/redis_server.h"
#include "support/running_updater.h"
#include "tests/support/seed.h"

namespace fcap::testing {

/// A broker for all tests of the binary; a Redis, a topic and what must come of it for each.
class UpdaterPipeline : public KafkaTest {
 protected:
  static constexpr std::chrono::milliseconds kPatience{300'000};
  static constexpr std::uint64_t kSeed = 20'240'607;  // unless FCAP_TEST_SEED says another

  void SetUp() override {
    KafkaTest::SetUp();
    if (IsSkipped()) return;
    RecordProperty("seed", std::to_string(test_seed(kSeed)));
  }

  std::unique_ptr<RunningUpdater> start_updater(const updater::UpdaterOptions& options = {}) {
    RunningUpdater::Options all;
    all.brokers = kafka->brokers();
    all.redis_address = redis_address_.empty() ? redis_->address() : redis_address_;
    all.redis_user = redis_user_;
    all.redis_password = redis_user_;
    all.topic = topic_;
    all.dead_letter_topic = dead_topic_.empty() ? topic_ + ".dead" : dead_topic_;
    all.group_instance_id = group_instance_id_;
    all.group_id = topic_;
    all.updater = options;
    all.decoder = decoder_;
    return std::make_unique<RunningUpdater>(all);
  }

  void produce(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      const MadeEvent event = maker_.next();
      producer_->send(topic_, event.user_id, event.json());
      expected_.add(event);
    }
  }

  // Everything that was produced is in Redis, nothing else, and it stays so.
  void expect_all_counted(RunningUpdater& updater) {
    producer_->flush();
    ExpectedLedgers::Difference difference;
    // Just after an outage a read may still be refused (unreadable); that passes.
    wait_until(
        [&] {
          difference = expected_.compare(updater.store());
          return difference.missing + difference.unreadable == 0;
        },
        kPatience);
    EXPECT_EQ(difference.missing, 0U) << "seed " << test_seed(kSeed) << "\n" << updater.log();
    EXPECT_EQ(difference.surplus, 0U) << "seed " << test_seed(kSeed);
    EXPECT_EQ(difference.unreadable, 0U) << "seed " << test_seed(kSeed);
  }

  static void expect_ready(const RunningUpdater& updater) {
    EXPECT_TRUE(wait_until([&] { return updater.not_ready().empty(); }, kPatience))
        << updater.not_ready() << updater.log();
  }
  /// Until the log says so.
  static void expect_said(const RunningUpdater& updater, std::string_view text) {
    EXPECT_TRUE(
        wait_until([&] { return updater.log().find(text) != std::string::npos; }, kPatience))
        << text << "\n"
        << updater.log();
  }

  /// Until the updater has looked so often once more, and has told what it found. At the first of
  /// the looks something may have been missed that happened while it was under way.
  static void expect_looks(const RunningUpdater& updater, std::uint64_t more = 2) {
    const std::uint64_t before = updater.looks();
    EXPECT_TRUE(wait_until([&] { return updater.looks() >= before + more; }, kPatience))
        << updater.looks() - before << " looks\n"
        << updater.log();
  }

  /// Deletes the topic and makes another of its name; what was produced so far is in Redis and
  /// stays there. Kafka may refuse until it has deleted the former one.
  void recreate_topic() {
    kafka->delete_topic(topic_);
    std::string refusal;
    const auto create = [&] {
      try {
        kafka->create_topic(topic_, kPartitions);
      } catch (const std::runtime_error& error) {
        refusal = error.what();
        return false;
      }
      refusal = "the topic still has its messages";
      return kafka->end_sum(topic_, kPartitions) == 0;
    };
    ASSERT_TRUE(wait_until(create, kPatience)) << refusal;
  }

  [[nodiscard]] std::int64_t committed() const {
    return kafka->committed_sum(topic_, topic_, kPartitions);
  }

  std::string redis_address_;  ///< where the updater looks for Redis; empty: at redis_
  std::string redis_user_;     ///< the updater's account, its password being its name
  std::string dead_topic_;     ///< empty: topic_.dead
  std::string group_instance_id_;
  events::EventDecoder* decoder_ = nullptr;  ///< null: of JSON
  EventMaker maker_{test_seed(kSeed), 2000};
  ExpectedLedgers expected_;
};

}  // namespace fcap::testing
