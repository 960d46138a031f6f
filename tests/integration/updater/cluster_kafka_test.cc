// The write path into a real Redis Cluster, through everything that happens to clusters: in the end
// every event is in its user's ledger, once.
#include <thread>

#include <gtest/gtest.h>

#include "redis/client.h"
#include "support/cluster_test.h"
#include "support/updater_pipeline.h"

namespace fcap {
namespace cluster_kafka_test {

using testing::RedisCluster;
using testing::RunningUpdater;
using testing::Slots;
using testing::wait_until;

class UpdaterCluster : public testing::UpdaterPipeline {
 protected:
  void SetUp() override {
    UpdaterPipeline::SetUp();
    if (IsSkipped()) return;
    cluster_ = std::make_unique<RedisCluster>();
    for (int node = 0; node < RedisCluster::kMembers; ++node) {
      // Else nobody is answered while one shard is away.
      ASSERT_EQ(cluster_->command(node, {"CONFIG", "SET", "cluster-require-full-coverage", "no"}),
                "OK");
    }
    redis_address_ = cluster_->url();
  }

  // How many appends a node has executed.
  [[nodiscard]] long long appends(int node) const { return cluster_->calls(node, "append"); }
  void count_from_here(int but = -1) {
    for (const int node : {0, 1, 2, 4, 5}) {
      if (node == but) continue;
      ASSERT_EQ(cluster_->command(node, {"CONFIG", "RESETSTAT"}), "OK");
    }
  }
  // What was there before is not written again.
  void expect_no_more_appends_than(std::size_t events, RunningUpdater& updater) {
    EXPECT_LE(appends(0) + appends(1) + appends(2), static_cast<long long>(events) + again(updater))
        << updater.log();
  }
  // An append that the machine has held up for too long is made again, and Redis may see both. A
  // record that it has held up is taken for one that lacks everything, however much that is.
  [[nodiscard]] long long again(const RunningUpdater& updater) const {
    const bool unread = updater.metrics().gap_records_unread.value() > 0;
    return static_cast<long long>(updater.metrics().write_retries.value()) +
           (unread ? expected_.count([](const std::string&) { return true; }).events : 0);
  }
  // What was produced for the users of these slots.
  [[nodiscard]] testing::ExpectedLedgers::Count produced(Slots slots) const {
    return expected_.count([slots](const std::string& user) {
      const int slot = redis::slot_of(user);
      return slots.first <= slot && slot <= slots.last;
    });
  }
  static void expect_settled(RunningUpdater& updater) {
    EXPECT_TRUE(wait_until([&] { return updater.metrics().gap_offsets.value() == 0; }, kPatience))
        << updater.log();
  }
  // Does something while events keep coming.
  template <typename Action>
  void under_load(const Action& action) {
    const std::jthread load([this](const std::stop_token& over) {
      while (!over.stop_requested()) {
        produce(50);
        std::this_thread::sleep_for(std::chrono::milliseconds{20});
      }
    });
    action();
  }
  // Until a shard's marks say so, the next updater takes them for a loss.
  void wait_for_safe_marks() {
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
      const auto safe = [&] {
        return cluster_->command(shard, {"EVAL", R"(
            local marks = redis.call('KEYS', 'fcap:!mark:*')
            for _, key in ipairs(marks) do
              if not string.find(redis.call('GET', key), 'arrivals=safe') then return 'no' end
            end
            return #marks > 0 and 'yes' or 'none')",
                                         "0"}) == "yes";
      };
      EXPECT_TRUE(wait_until(safe, kPatience)) << "shard " << shard;
    }
  }
  // Counts those of all partitions, on the first masters.
  [[nodiscard]] int copies_of_marks() const {
    int count = 0;
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
      count += std::stoi(
          cluster_->command(shard, {"EVAL", "return #redis.call('KEYS', 'fcap:!mark:*')", "0"}));
    }
    return count;
  }
  // The next updater would fill them again.
  void expect_no_gaps_in_marks() {
    for (int shard = 0; shard < RedisCluster::kShards; ++shard) {
      EXPECT_EQ(cluster_->command(shard, {"EVAL", R"(
            for _, key in ipairs(redis.call('KEYS', 'fcap:!mark:*')) do
              if string.find(redis.call('GET', key), 'gaps=') then return key end
            end
            return 'none')",
                                          "0"}),
                "none");
    }
  }
  void expect_all_committed() { EXPECT_EQ(committed(), kafka->end_sum(topic_, kPartitions)); }
  // The marks are confirmed before the offsets are committed.
  void wait_for_marks_of_everything() {
    const auto end = kafka->end_sum(topic_, kPartitions);
    EXPECT_TRUE(wait_until([&] { return committed() == end; }, kPatience));
  }

  std::unique_ptr<RedisCluster> cluster_;
};

TEST_F(UpdaterCluster, EverythingIsCountedAndNothingTwice) {
  produce(20'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  produce(5'000);
  expect_all_counted(*updater);
  expect_settled(*updater);
  expect_ready(*updater);
  wait_for_safe_marks();
  updater->stop();
  expect_all_committed();
  count_from_here();
  produce(100);
  updater = start_updater();
  expect_all_counted(*updater);
  expect_settled(*updater);
  expect_no_more_appends_than(100, *updater);
  EXPECT_EQ(updater->metrics().mark_losses.value(), 0U) << updater->log();
}

TEST_F(UpdaterCluster, OnlyTheUsersOfAShardThatWasEmptiedAreWrittenAgain) {
  produce(20'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  count_from_here();
  ASSERT_EQ(cluster_->command(1, {"FLUSHALL"}), "OK");
  expect_all_counted(*updater);
  expect_settled(*updater);
  EXPECT_GT(appends(1), 0);
  EXPECT_EQ(appends(0), 0) << updater->log();
  EXPECT_EQ(appends(2), 0) << updater->log();
  EXPECT_GT(updater->metrics().mark_losses.value(), 0U);
}

TEST_F(UpdaterCluster, AMasterThatIsKilledIsReplacedAndNothingIsLost) {
  auto updater = start_updater();
  produce(5'000);
  expect_all_counted(*updater);
  under_load([&] { cluster_->fail_over(0, RedisCluster::FailOver::kKilled); });
  produce(2'000);
  expect_all_counted(*updater);
  expect_settled(*updater);
}

TEST_F(UpdaterCluster, WhatAReplicaThatWasHeldBackLacksIsReadAgainForItsUsers) {
  auto updater = start_updater();
  produce(5'000);
  expect_all_counted(*updater);
  {
    const auto held_back = cluster_->hold_back(cluster_->replica(2));
    produce(5'000);
    expect_all_counted(*updater);
    count_from_here();
    cluster_->fail_over(2, RedisCluster::FailOver::kTakenOver);
  }
  expect_all_counted(*updater);
  expect_settled(*updater);
  EXPECT_GT(appends(5), 0) << updater->log();
  EXPECT_EQ(appends(0), 0) << updater->log();
  EXPECT_EQ(appends(1), 0) << updater->log();
}

TEST_F(UpdaterCluster, WhatAShardRestoredFromASnapshotLacksIsReadAgainForItsUsers) {
  constexpr int kShard = 1;
  const Slots slots = RedisCluster::slots_of(kShard);
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  wait_for_marks_of_everything();
  cluster_->kill(cluster_->replica(kShard));  // or it would take the master's place
  ASSERT_EQ(cluster_->command(kShard, {"SAVE"}), "OK");
  const long long in_snapshot = produced(slots).events;
  produce(5'000);
  expect_all_counted(*updater);
  count_from_here(4);
  cluster_->kill(kShard);
  cluster_->start(kShard);  // with the snapshot
  expect_all_counted(*updater);
  expect_settled(*updater);
  EXPECT_GT(appends(kShard), 0) << updater->log();
  EXPECT_LE(appends(kShard), produced(slots).events - in_snapshot + again(*updater))
      << updater->log();
  EXPECT_EQ(appends(0), 0) << updater->log();
  EXPECT_EQ(appends(2), 0) << updater->log();
  EXPECT_GT(updater->metrics().mark_losses.value(), 0U);
}

TEST_F(UpdaterCluster, SlotsWhoseKeysDieWithTheirNewMasterAreReadAgain) {
  constexpr Slots kMoved{0, 2700};
  const Slots target = RedisCluster::slots_of(1);
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  wait_for_marks_of_everything();
  const long long before = produced(target).events;
  {
    const auto held_back = cluster_->hold_back(cluster_->replica(1));
    produce(2'000);
    expect_all_counted(*updater);
    cluster_->move_slots(0, 1, kMoved);
    count_from_here();
    cluster_->fail_over(1, RedisCluster::FailOver::kKilled);
  }
  expect_all_counted(*updater);
  expect_settled(*updater);
  const auto moved = produced(kMoved);
  EXPECT_GE(appends(4), moved.users) << updater->log();
  EXPECT_LE(appends(4), moved.events + produced(target).events - before + again(*updater))
      << updater->log();
  EXPECT_EQ(appends(0), 0) << updater->log();
  EXPECT_EQ(appends(2), 0) << updater->log();
}

TEST_F(UpdaterCluster, SlotsWhoseKeysDieWithTheirNewMasterWhileItIsStoppedAreReadAgain) {
  constexpr Slots kMoved{0, 2700};
  auto updater = start_updater();
  produce(10'000);
  expect_all_counted(*updater);
  expect_settled(*updater);
  wait_for_safe_marks();
  updater->stop();
  {
    const auto held_back = cluster_->hold_back(cluster_->replica(1));
    cluster_->move_slots(0, 1, kMoved);
    cluster_->fail_over(1, RedisCluster::FailOver::kKilled);
  }
  count_from_here(1);
  updater = start_updater();
  expect_all_counted(*updater);
  expect_settled(*updater);
  EXPECT_GE(appends(4), produced(kMoved).users) << updater->log();
  EXPECT_LE(appends(4), produced(kMoved).events + again(*updater)) << updater->log();
  EXPECT_EQ(appends(0), 0) << updater->log();
  EXPECT_EQ(appends(2), 0) << updater->log();
}

TEST_F(UpdaterCluster, SOAK_HalfTheSlotsMoveAndComeBackUnderLoad) {
  constexpr Slots kOfFirst{0, 4095};
  constexpr Slots kOfLast{11'000, 15'095};
  auto updater = start_updater();
  produce(5'000);
  expect_all_counted(*updater);
  count_from_here();
  const std::size_t before = expected_.events();
  under_load([&] {
    cluster_->move_slots(0, 1, kOfFirst);
    cluster_->move_slots(2, 1, kOfLast);
    cluster_->move_slots(1, 0, kOfFirst);
    cluster_->move_slots(1, 2, kOfLast);
  });
  expect_all_counted(*updater);
  expect_settled(*updater);
  expect_no_more_appends_than(expected_.events() - before, *updater);
  EXPECT_TRUE(wait_until(
      [&] { return copies_of_marks() == RedisCluster::kShards * kPartitions * 2; }, kPatience))
      << copies_of_marks();
  EXPECT_EQ(updater->metrics().mark_losses.value(), 0U) << updater->log();
}

TEST_F(UpdaterCluster, AMasterThatJoinsUnderLoadTakesItsShareAndLeavesAgain) {
  constexpr Slots kLent{0, 511};
  const Slots others{RedisCluster::slots_of(1).first, RedisCluster::slots_of(2).last};
  auto updater = start_updater();
  produce(5'000);
  expect_all_counted(*updater);
  count_from_here();
  const long long before = produced(others).events;
  under_load([&] {
    const int added = cluster_->add_node();
    cluster_->move_slots(0, added, kLent);
    EXPECT_TRUE(wait_until([&] { return appends(added) > 0; }, kPatience)) << updater->log();
    cluster_->move_slots(added, 0, kLent);
    cluster_->remove_node(added);
  });
  expect_all_counted(*updater);
  expect_settled(*updater);
  EXPECT_TRUE(wait_until([&] { return updater->not_ready().empty(); }, kPatience))
      << updater->not_ready() << updater->log();
  // Once the added master's mark has left with its slot, events are read again for users of slots
  // that it has or had, and each of their records is appended to, if only to see that the master
  // is the same. Nobody on the other masters is concerned.
  EXPECT_LE(appends(1) + appends(2), produced(others).events - before + again(*updater))
      << updater->log();
}

TEST_F(UpdaterCluster, SlotsThatMoveWhileItIsStoppedAreNotWrittenAgain) {
  produce(10'000);
  auto updater = start_updater();
  expect_all_counted(*updater);
  expect_settled(*updater);
  wait_for_safe_marks();
  updater->stop();
  cluster_->move_slots(0, 1, {0, 2700});
  count_from_here();
  produce(100);
  updater = start_updater();
  expect_all_counted(*updater);
  expect_settled(*updater);
  expect_no_more_appends_than(100, *updater);
}

// The others' first marks wait for its marks, which must not count against them.
TEST_F(UpdaterCluster, AnUpdaterThatStartsBesideAFrozenShardPutsOffOnlyItsUsers) {
  cluster_->kill(cluster_->replica(0));
  std::unique_ptr<RunningUpdater> updater;
  {
    const auto frozen = cluster_->freeze(0);
    updater = start_updater();
    produce(3'000);
    producer_->flush();
    const auto given_up = [&] {
      return updater->lag().messages == 0 && updater->metrics().gap_offsets.value() > 0;
    };
    EXPECT_TRUE(wait_until(given_up, kPatience)) << updater->log();
    // A busy machine may hold up one of the others, too, for a moment.
    const auto goes_on = [&](int shard) {
      const std::string log = updater->log();
      const auto put_off = log.rfind(cluster_->address(shard) + ": its marks cannot be confirmed");
      return put_off == std::string::npos ||
             log.find(cluster_->address(shard) + ": its marks are confirmed again", put_off) !=
                 std::string::npos;
    };
    EXPECT_FALSE(goes_on(0)) << updater->log();
    EXPECT_TRUE(wait_until([&] { return goes_on(1) && goes_on(2); }, kPatience)) << updater->log();
  }
  expect_all_counted(*updater);
  expect_settled(*updater);
  updater->stop();
  expect_no_gaps_in_marks();
}

TEST_F(UpdaterCluster, AShardThatIsFrozenDoesNotStopTheOthers) {
  auto updater = start_updater();
  produce(3'000);
  expect_all_counted(*updater);
  cluster_->kill(cluster_->replica(0));
  {
    const auto frozen = cluster_->freeze(0);
    count_from_here(0);
    produce(3'000);
    producer_->flush();
    // The lag may be that of before the messages, the gap is not.
    const auto given_up = [&] {
      return updater->lag().messages == 0 && updater->metrics().gap_offsets.value() > 0;
    };
    EXPECT_TRUE(wait_until(given_up, kPatience)) << updater->log();
    EXPECT_GT(appends(1), 0);
    EXPECT_GT(appends(2), 0);
    EXPECT_NE(updater->not_ready(), "");
  }
  expect_all_counted(*updater);
  expect_settled(*updater);
}

}  // namespace cluster_kafka_test
}  // namespace fcap
