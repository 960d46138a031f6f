// What marks say is tested with ShardMarks, and all of it together on real clusters.
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/shard_recovery_fixture.h"
#include "updater/pipeline/gap_filler.h"
#include "updater/pipeline/partition_set.h"

namespace fcap::updater {
namespace shard_recovery_test {

using std::chrono::milliseconds;
using testing::ScriptedCluster;

class ShardRecoveryTest : public testing::ShardRecoveryFixture {};

TEST_F(ShardRecoveryTest, ADoubtReachesBackToTheStartOfTheLogThatIsReadNow) {
  read_until_the_log_is_another();
  wait_until_read();
  read(0, 50);
  wait_for_marks();
  EXPECT_EQ(set_.recovery().offsets_missing(), 0);
  set_.recovery().doubt_all();
  EXPECT_EQ(set_.recovery().offsets_missing(), 50);
}

// Nothing has been put off yet, but it may come back without what it had.
TEST_F(ShardRecoveryTest, WhatIsMissingIsUnknownWhileAShardIsAway) {
  begin(100, 100);
  wait_for_marks();
  show_gaps(set_, metrics_);
  EXPECT_EQ(metrics_.gap_offsets.value(), 0);
  EXPECT_EQ(gap_ends(), (std::vector<std::optional<std::int64_t>>{std::nullopt}));
  cluster_.set_refusing(1, true);
  step_ = milliseconds{100};
  turn_until([this] { return metrics_.shards_away.value() == 1 && !set_.checking(); });
  show_gaps(set_, metrics_);
  EXPECT_EQ(metrics_.gap_offsets.value(), Gauge::kUnknown);
  EXPECT_TRUE(gap_ends().empty()) << "what is stated stays";
  EXPECT_NE(compared(), PartitionSet::Clock::time_point{}) << "nobody waits for that shard";
  cluster_.set_refusing(1, false);
  turn_until([this] { return metrics_.shards_away.value() == 0 && !set_.checking(); });
  show_gaps(set_, metrics_);
  EXPECT_EQ(metrics_.gap_offsets.value(), 0);
  EXPECT_EQ(gap_ends(), (std::vector<std::optional<std::int64_t>>{std::nullopt}));
}

TEST_F(ShardRecoveryTest, AGapConcernsTheUsersOfTheShardThatLacksEvents) {
  begin(100, 100);
  read(100, 110);
  wait_for_marks();
  EXPECT_EQ(lacking(), std::nullopt);
  cluster_.empty(1);
  read(110, 120);
  turn_until([this] { return lacking().has_value() && !set_.checking(); });
  EXPECT_EQ(lacking(), ScriptedCluster::all_slots_of(1));
  // The other one may come back without what it had.
  cluster_.set_refusing(0, true);
  step_ = milliseconds{100};
  turn_until([this] { return lacking() == SlotSet::all(); });
  EXPECT_GT(metrics_.shards_away.value(), 0);
  cluster_.set_refusing(0, false);
  turn_until([this] { return metrics_.shards_away.value() == 0 && !set_.checking(); });
  EXPECT_EQ(lacking(), ScriptedCluster::all_slots_of(1));
}

// Whatever is behind the next connection, this one's marks say nothing of it.
TEST_F(ShardRecoveryTest, WhatAShardHadBeforeItsConnectionWasLostSaysNothingOfItsUsers) {
  begin(100, 100);
  read(100, 110);
  wait_for_marks();
  wait_until_shards_are_waited_for();
  const std::vector<std::optional<std::int64_t>> nothing_missing{std::nullopt};
  ASSERT_EQ(gap_ends(), nothing_missing);
  EXPECT_NE(compared(), PartitionSet::Clock::time_point{});
  cluster_.set_refusing(1, true);
  turn_until([this] { return is_in_trouble(1); });
  ASSERT_EQ(metrics_.shards_away.value(), 0);
  EXPECT_TRUE(gap_ends().empty()) << "what is stated stays";
  EXPECT_EQ(compared(), PartitionSet::Clock::time_point{});
  cluster_.empty(1);
  cluster_.set_refusing(1, false);
  turn_until([&] {
    EXPECT_NE(gap_ends(), nothing_missing);
    return lacking().has_value();
  });
  EXPECT_EQ(lacking(), ScriptedCluster::all_slots_of(1));
}

TEST_F(ShardRecoveryTest, AGapConcernsTheUsersOfAShardWhoseConnectionWasLost) {
  begin(100, 100);
  read(100, 110);
  wait_for_marks();
  cluster_.empty(0);
  read(110, 120);
  turn_until([this] { return lacking().has_value() && !set_.checking(); });
  wait_until_shards_are_waited_for();
  ASSERT_EQ(lacking(), ScriptedCluster::all_slots_of(0));
  cluster_.set_refusing(1, true);
  turn_until([this] { return is_in_trouble(1); });
  ASSERT_EQ(metrics_.shards_away.value(), 0);
  EXPECT_EQ(lacking(), SlotSet::all());
  cluster_.set_refusing(1, false);
  turn_until([this] { return !set_.checking(); });
  EXPECT_EQ(lacking(), ScriptedCluster::all_slots_of(0));
}

// An answer may be of before a loss that was seen while the write was under way.
TEST_F(ShardRecoveryTest, MarksAreComparedSinceTheWriteOfTheSlowestShardBegan) {
  begin(100, 100);
  wait_for_marks();
  EXPECT_LT(compared(), now_);
  cluster_.set_refusing_marks(1, true);
  step_ = milliseconds{10};
  turn_for(std::chrono::seconds{2});
  const auto last = compared();
  turn_for(std::chrono::seconds{3});
  EXPECT_EQ(compared(), last);
  cluster_.set_refusing_marks(1, false);
  turn_until([&] { return compared() > last; });
}

TEST_F(ShardRecoveryTest, MarksThatAreGoneAreSaidOfTheSlotsOfTheirShards) {
  begin(100, 0);
  EXPECT_EQ(testing::news_of(set_).gone, SlotSet::all()) << "the group has committed an offset";
  read(100, 110);
  fill_all();
  wait_for_marks();
  EXPECT_EQ(testing::news_of(set_).gone, SlotSet{});
  cluster_.empty(1);
  turn_until([this] { return lacking().has_value() && !set_.checking(); });
  EXPECT_EQ(testing::news_of(set_).gone, ScriptedCluster::all_slots_of(1));
  wait_for_marks();
  cluster_.empty_all();
  read(110, 120);
  turn_until([this] { return metrics_.mark_losses.value() == 3 && !set_.checking(); });
  EXPECT_EQ(testing::news_of(set_).gone, SlotSet::all());
}

TEST_F(ShardRecoveryTest, WhereAGroupBeginsNoMarkIsGone) {
  log_.start = 0;
  std::vector<PartitionOffset> at{{0, PartitionOffset::kNone}};
  set_.assign(at);
  wait_until_read();
  read(0, 10);
  wait_for_marks();
  EXPECT_EQ(testing::news_of(set_).gone, SlotSet{});
  cluster_.empty(1);
  turn_until([this] { return lacking().has_value() && !set_.checking(); });
  EXPECT_EQ(testing::news_of(set_).gone, ScriptedCluster::all_slots_of(1))
      << "by now there were some";
}

TEST_F(ShardRecoveryTest, WhatHasExpiredIsMissingForGoodForTheUsersOfTheShardThatLacksIt) {
  begin(100, 100);
  read(100, 110);
  wait_for_marks();
  cluster_.empty(1);
  read(110, 120);
  std::vector<GapPiece> pieces;
  turn_until([&] {
    set_.recovery().list_pieces(pieces);
    return !pieces.empty();
  });
  set_.recovery().expire(pieces[0], 115, instant_from_ms(1'699'000'000'000), {});
  const auto expired = set_.take_expired();
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].slots, ScriptedCluster::all_slots_of(1));
  EXPECT_EQ(expired[0].newest, instant_from_ms(1'699'000'000'000));
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  fill_all();
  wait_for_marks();
  EXPECT_EQ(set_.recovery().offsets_missing(), 0);
  EXPECT_FALSE(was_said("nothing is missing"));
}

TEST_F(ShardRecoveryTest, AShardThatIsEmptiedLacksWhatKafkaHasNoMore) {
  begin(100, 100);
  read(100, 110);
  wait_for_marks();
  EXPECT_TRUE(set_.take_expired().empty());
  log_.log_start = 100;
  log_.gone_before = instant_from_ms(1'699'000'000'000);
  cluster_.empty(1);
  read(110, 120);
  std::vector<ExpiredEvents> expired;
  turn_until([&] {
    if (expired.empty()) expired = set_.take_expired();
    return !expired.empty();
  });
  EXPECT_EQ(expired[0].slots, ScriptedCluster::all_slots_of(1));
  EXPECT_EQ(expired[0].newest, log_.gone_before);
}

// It is acknowledged over a connection on which no mark was confirmed.
TEST_F(ShardRecoveryTest, AnEventThatDoesNotCountIsMissingAsSoonAsThePositionIsBeyondIt) {
  begin(100, 100);
  wait_for_marks();
  class Unheard final : public RoundListener {
    void round_over(Batch& /*batch*/) noexcept override {}
  } unheard;
  Batch batch(unheard);
  Coalescer coalescer({.key_prefix = "p"});
  events::Event event;
  event.user_id = "u";
  event.campaign_id = "c";
  event.event_id = "e";
  coalescer.add(event);
  coalescer.finish(batch.writes);
  ASSERT_TRUE(set_.take(0, 100));
  set_.seal(batch.ranges);
  batch.start_round(store_, {.deadline = now_ + std::chrono::hours{1}});
  set_.complete_batch(batch);
  EXPECT_EQ(set_.low_water(0), 101);
  EXPECT_EQ(set_.recovery().offsets_missing(), 1);
  const SlotSet first = ScriptedCluster::all_slots_of(0);
  const bool in_first = first.contains(redis::slot_of(batch.writes.key(0)));
  EXPECT_EQ(lacking(), in_first ? first : ScriptedCluster::all_slots_of(1));
}

TEST_F(ShardRecoveryTest, AGapConcernsEverybodyUntilEachShardsMarksWereRead) {
  cluster_.set_refusing(1, true);
  step_ = milliseconds{100};
  begin(100, 0);
  EXPECT_EQ(metrics_.shards_away.value(), 1);
  EXPECT_EQ(lacking(), SlotSet::all());
  std::vector<GapPiece> pieces;
  turn_until([&] {
    set_.recovery().list_pieces(pieces);
    return !pieces.empty();
  });
  ASSERT_EQ(pieces.front().slots, ScriptedCluster::all_slots_of(0));
  set_.recovery().piece_done(pieces.front());
  EXPECT_TRUE(gap_ends().empty()) << "what is stated stays";
  cluster_.set_refusing(1, false);
  turn_until([this] { return metrics_.shards_away.value() == 0 && !set_.checking(); });
  EXPECT_EQ(lacking(), ScriptedCluster::all_slots_of(1));
}

// Whatever another shard lacks, this one may lack something, too.
TEST_F(ShardRecoveryTest, WhileAMarkCannotBeComparedEverybodyMayLackEvents) {
  begin(100, 100);
  read(100, 110);
  wait_for_marks();
  cluster_.empty(1);
  read(110, 120);
  turn_until([this] { return lacking().has_value() && !set_.checking(); });
  looks_.silent = {0};
  cluster_.empty(0);
  cluster_.put_others_mark(80, {.cluster = "one", .last = looks_.point(79)}, 5);
  read(120, 130);
  step_ = milliseconds{10};
  turn_until([this] { return set_.trouble().find("Kafka cannot say yet") != std::string::npos; });
  EXPECT_EQ(lacking(), SlotSet::all());
  EXPECT_EQ(gap_ends(), (std::vector<std::optional<std::int64_t>>{130}));
}

TEST_F(ShardRecoveryTest, APartitionIsReadWhoseMarkAnotherUpdaterKeepsWriting) {
  const LogPoint checked = looks_.point(40);
  cluster_.put_others_mark(80, {.cluster = "one", .last = looks_.point(79), .checked = checked}, 5);
  cluster_.change_others_mark([this](const MarkValue& before) {
    MarkValue next = before;
    next.log.last = looks_.point(next.position++);
    ++next.shard->serial;
    return next;
  });
  begin(1'000, 0);
  EXPECT_EQ(metrics_.mark_losses.value(), 0U);
}

TEST_F(ShardRecoveryTest, AMarkThatCannotBeComparedForWantOfALeaderStopsOnlyItsPartition) {
  log_.start = looks_.low = 100;
  std::vector<PartitionOffset> both;
  for (const std::int32_t partition : {0, 1}) {
    log_.commits[partition] = 100;
    both.push_back({partition, PartitionOffset::kNone});
  }
  set_.assign(both);
  wait_until_read();
  wait_for_marks();
  set_.revoke(both);
  looks_.silent = {1};
  set_.assign(both);
  step_ = milliseconds{10};
  turn_until([this] { return !set_.checking(); });
  EXPECT_TRUE(set_.take(0, 100));
  EXPECT_FALSE(set_.take(1, 100));
  EXPECT_TRUE(set_.failing());
  EXPECT_NE(set_.trouble().find("partition 1: Kafka cannot say yet"), std::string::npos)
      << set_.trouble();
  show_gaps(set_, metrics_);
  EXPECT_EQ(metrics_.gap_offsets.value(), Gauge::kUnknown);
  looks_.silent.clear();
  turn_until([this] { return !set_.checking() && !set_.failing(); });
  std::vector<PartitionOffset> to_place;
  set_.to_place(to_place);
  ASSERT_EQ(to_place.size(), 1U);
  EXPECT_EQ(to_place[0].partition, 1);
  EXPECT_EQ(metrics_.mark_losses.value(), 0U);
}

TEST_F(ShardRecoveryTest, AShardThatTakesNoMarksIsStillAwayAfterAllPartitionsWaitedForKafka) {
  begin(100, 100);
  wait_for_marks();
  std::vector<PartitionOffset> at{{0, PartitionOffset::kNone}};
  set_.revoke(at);
  looks_.silent = {0};
  cluster_.set_refusing_marks(1, true);
  set_.assign(at);
  step_ = milliseconds{10};
  turn_until([this] { return was_said("partition 0: Kafka cannot say yet"); });
  looks_.silent.clear();
  step_ = milliseconds{100};
  turn_until([this] { return !set_.checking(); });
  EXPECT_EQ(metrics_.shards_away.value(), 1);
  EXPECT_EQ(set_.trouble().find("Kafka cannot say yet"), std::string::npos) << set_.trouble();
  cluster_.set_refusing_marks(1, false);
  turn_until([this] { return metrics_.shards_away.value() == 0 && !set_.checking(); });
}

TEST_F(ShardRecoveryTest, AShardThatIsAwayStaysSoWhileAllPartitionsWaitForKafka) {
  begin(100, 100);
  wait_for_marks();
  cluster_.set_refusing(1, true);
  step_ = milliseconds{100};
  turn_until([this] { return metrics_.shards_away.value() == 1 && !set_.checking(); });
  wait_until_shards_are_waited_for();
  step_ = milliseconds{100};
  cluster_.set_refusing_marks(1, true);
  cluster_.set_refusing(1, false);
  std::vector<PartitionOffset> at{{0, PartitionOffset::kNone}};
  set_.revoke(at);
  looks_.silent = {0};
  step_ = milliseconds{10};
  set_.assign(at);
  said_.clear();
  turn_until([this] { return was_said("partition 0: Kafka cannot say yet"); });
  EXPECT_EQ(metrics_.shards_away.value(), 1);
  looks_.silent.clear();
  turn_until([this] { return !set_.checking(); });
  EXPECT_EQ(metrics_.shards_away.value(), 1);
  EXPECT_FALSE(was_said("its marks are confirmed again"));
}

TEST_F(ShardRecoveryTest, WhileAShardIsAwayNobodySaysThatMarksAreConfirmedAgain) {
  begin(100, 100);
  wait_for_marks();
  cluster_.set_refusing(1, true);
  step_ = milliseconds{100};
  turn_until([this] { return metrics_.shards_away.value() == 1 && !set_.checking(); });
  std::vector<PartitionOffset> another{{1, PartitionOffset::kNone}};
  log_.without_leader = {1};
  set_.assign(another);
  turn_until([this] { return was_said("attempt 2"); });
  log_.without_leader.clear();
  turn_until([this] { return set_.waits_for(1) == std::nullopt || set_.awaited(1).has_value(); });
  EXPECT_EQ(std::ranges::count(said_, "marks are confirmed again"), 0);
}

TEST_F(ShardRecoveryTest, MarksAreNotSettledBeforeTheySayWhatIsDoubted) {
  begin(100, 0);
  read(100, 110);
  wait_for_marks();
  fill_all();
  wait_for_marks();
  ASSERT_EQ(set_.recovery().offsets_missing(), 0);
  set_.recovery().doubt_all();
  ASSERT_EQ(set_.recovery().offsets_missing(), 110);
  EXPECT_FALSE(set_.recovery().settled());
  turn_until([this] { return set_.recovery().settled(); });
  for (int node = 0; node < ScriptedCluster::kNodes; ++node) {
    for (const auto& [key, text] : cluster_.records(node)) {
      EXPECT_EQ(decode_mark(text)->gaps, (std::vector<Gap>{{0, 110}})) << key;
    }
  }
}

// Then its marks are all that it is taken over by, and they say nothing of what has expired.
TEST_F(ShardRecoveryTest, APartitionThatIsDoubtedBeforeKafkaSaysWhereItBeginsIsReadAgain) {
  begin(100, 0);
  read(100, 110);
  wait_for_marks();
  EXPECT_EQ(set_.recovery().offsets_missing(), 100);
  const std::vector<PartitionOffset> own{{0, PartitionOffset::kNone}};
  set_.revoke(own);
  log_.commits[0] = 110;
  log_.without_leader = {0};
  std::vector<PartitionOffset> at = own;
  set_.assign(at);
  set_.recovery().doubt_all();
  EXPECT_EQ(gap_ends(),
            (std::vector<std::optional<std::int64_t>>{std::numeric_limits<std::int64_t>::max()}));
  log_.without_leader.clear();
  wait_until_read();
  EXPECT_EQ(set_.recovery().offsets_missing(), 110);
}

TEST_F(ShardRecoveryTest, WhatIsDoubtedIsReadAgainAlsoAfterItWasGivenUpMeanwhile) {
  begin(100, 0);
  read(100, 110);
  wait_for_marks();
  fill_all();
  wait_for_marks();
  log_.commits[0] = 110;
  const std::vector<PartitionOffset> own{{0, PartitionOffset::kNone}};
  std::vector<PartitionOffset> at = own;
  // Not until all shards' marks say so.
  cluster_.set_refusing(1, true);
  set_.recovery().doubt_all();
  step_ = milliseconds{100};
  turn_until([this] { return metrics_.shards_away.value() == 1; });
  set_.revoke(own);
  cluster_.set_refusing(1, false);
  step_ = milliseconds{2};
  set_.assign(at);
  turn_until([this] { return metrics_.shards_away.value() == 0 && !set_.checking(); });
  wait_until_read();
  EXPECT_EQ(set_.recovery().offsets_missing(), 110);
  wait_for_marks();
  fill_all();
  wait_for_marks();
  set_.revoke(own);
  at = own;
  set_.assign(at);
  wait_until_read();
  EXPECT_EQ(set_.recovery().offsets_missing(), 0) << "a doubt counts once";
}

// The mark that said so may be gone with the shard's data.
TEST_F(ShardRecoveryTest, WhatIsDoubtedStaysSoUntilMarksOfThePresentConnectionSayIt) {
  begin(100, 0);
  wait_for_marks();
  wait_until_shards_are_waited_for();
  cluster_.set_refusing(0, true);
  turn_until([this] { return is_in_trouble(0); });
  set_.recovery().doubt_all();
  turn_for(std::chrono::seconds{1});
  cluster_.empty(0);
  cluster_.put_others_mark(100, {.cluster = "one", .last = looks_.point(99)}, 5);
  std::vector<PartitionOffset> at{{0, PartitionOffset::kNone}};
  set_.revoke(at);
  cluster_.set_refusing(0, false);
  set_.assign(at);
  wait_until_read();
  EXPECT_EQ(lacking(), SlotSet::all());
}

}  // namespace shard_recovery_test
}  // namespace fcap::updater
