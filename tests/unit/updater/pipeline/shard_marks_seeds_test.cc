// What seeds of ShardModel have taught: a test for each cause.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/shard_marks_fixture.h"

namespace fcap::updater {
namespace shard_marks_seeds_test {

using testing::ShardMarksTest;

TEST_F(ShardMarksTest, ASlotOnTheMoveIsReadAgainAfterEveryLossAndNotOnlyTheFirst) {
  come_to_rest();
  shards_.at("a").look.migrating = {1, 1};
  shards_.at("b").look.importing = {1, 1};
  turns();
  ++shards_.at("b").epoch;
  shards_.at("b").look.replication = "r-b2";
  turns();
  EXPECT_EQ(marks_.missing().of({1, 1}), (Gaps{{0, 100}}));
  marks_.filled({1, 1}, {0, 100}, marks_.stamp());
  ++shards_.at("b").epoch;
  shards_.at("b").look.replication = "r-b3";
  shards_.at("b").look.importing = {};
  turns();
  EXPECT_EQ(marks_.missing().of({1, 1}), (Gaps{{0, 100}}));
}

TEST_F(ShardMarksTest, ASlotThatHadArrivedWhenItsNewOwnerLostItIsReadAgain) {
  come_to_rest();
  shards_.at("a").look.migrating = {1, 1};
  shards_.at("b").look.importing = {};
  shards_.at("b").look.owned |= SlotSet(1, 1);
  turn("b");
  shards_.at("b").look.owned -= SlotSet(1, 1);
  shards_.at("b").look.replication = "r-b2";
  ++shards_.at("b").epoch;
  shards_.at("a").look.migrating = {};
  turns();
  EXPECT_EQ(marks_.missing().of({1, 1}), (Gaps{{0, 100}}));
}

TEST_F(ShardMarksTest, AMasterWhoseLastSlotHasLeftDoesNotShowThatItLostNothing) {
  shards_.at("a").look.owned = {0, 4};
  shards_["c"] = {{.node = "c", .replication = "r-c", .owned = {5, 5}}};
  marks_.set_nodes(nodes());
  come_to_rest();
  shards_.at("c").marks.clear();
  move({5, 5}, "c", "b");
  turns();
  EXPECT_EQ(marks_.missing().of({5, 5}), (Gaps{{0, 100}}));
  EXPECT_TRUE(marks_.missing().of({0, 4}).empty());
}

TEST_F(ShardMarksTest, WhenNoMarkNamesASlotAnyMoreOthersOnTheMoveMayHaveLostSomethingToo) {
  shards_.at("a").look.owned = {0, 4};
  shards_["c"] = {{.node = "c", .replication = "r-c", .owned = {5, 5}}};
  marks_.set_nodes(nodes());
  come_to_rest();
  shards_.at("c").marks.clear();
  move({1, 1}, "a", "c");
  move({1, 1}, "c", "b");
  move({5, 5}, "c", "b");
  start_again();
  turns();
  EXPECT_EQ(marks_.missing().of({1, 1}), (Gaps{{0, 100}}));
  EXPECT_EQ(marks_.missing().of({5, 5}), (Gaps{{0, 100}}));
}

TEST_F(ShardMarksTest, ASlotMovesUnseenBesideALossAndIsReadAgainWhenItIsSeen) {
  come_to_rest();
  shards_.at("b").look.replication = "r-b2";
  ++shards_.at("b").epoch;
  turn("b");
  turn("b");
  EXPECT_EQ(restarted(), 0U);
  shards_.at("a").look.migrating = {1, 1};
  turn("a");
  EXPECT_EQ(marks_.missing().of({1, 1}), (Gaps{{0, 100}})) << "its keys may have been on b by then";
}

TEST_F(ShardMarksTest, AMarkThatCameBackToAReplicaWithOlderDataCountsOnlyAsFarAsTheOtherCopy) {
  come_to_rest();
  const std::vector<MarkValue> replica = shards_.at("a").marks;
  marks_.taken(150);
  turn("a", 150);
  const std::vector<MarkValue> newer = shards_.at("a").marks;
  shards_.at("a").marks = replica;
  put("a", newer.front());
  fail_over("a", "a2");
  turns();
  EXPECT_EQ(marks_.missing().of({0, 5}), (Gaps{{100, 150}}));
}

TEST_F(ShardMarksTest, AMarkThatCameBackToAnEmptiedShardClaimsNothingForANewUpdater) {
  come_to_rest();
  const std::vector<MarkValue> old = shards_.at("a").marks;
  shards_.at("a").marks = {old.front()};
  start_again();
  turns();
  EXPECT_EQ(marks_.missing().of({0, 5}), (Gaps{{0, 100}}));
}

TEST_F(ShardMarksTest, AMarkWhoseOtherCopyLeftWithItsSlotStillCounts) {
  come_to_rest();
  move({5, 5}, "a", "b");
  start_again();
  turns();
  EXPECT_EQ(restarted(), 0U);
  EXPECT_TRUE(marks_.missing().empty());
}

TEST_F(ShardMarksTest, AnOldMarkThatComesBackWithItsSlotDoesNotSpeakAgainstANewerOne) {
  come_to_rest();
  const std::vector<MarkValue> old = shards_.at("a").marks;
  move({0, 5}, "a", "b");
  turns();
  turns();
  ASSERT_EQ(slots_of("b"), "0-11");
  lower("b", 80);
  move({5, 5}, "b", "a");
  move({3, 3}, "b", "a");
  for (const MarkValue& copy : old) put("a", copy);
  start_again();
  turns();
  EXPECT_TRUE(marks_.missing().of({3, 3}) == (Gaps{{0, 100}}) &&
              marks_.missing().of({5, 5}) == (Gaps{{0, 100}}))
      << "what the newer mark does not claim";
}

TEST_F(ShardMarksTest, ACopyThatLeftWhileItsShardWasAskedIsNoLoss) {
  come_to_rest();
  look("a");
  const auto mark = marks_.to_write("a", 100);
  put("a", copies_of(*mark).front());
  marks_.doubtful("a");
  marks_.looked(shards_.at("a").look, 1);
  const int left = mark->shard->places.front();
  shards_.at("a").look.migrating = {left, left};
  std::erase_if(shards_.at("a").marks,
                [left](const MarkValue& copy) { return copy.shard->places.front() == left; });
  marks_.found("a", 1, shards_.at("a").marks, marks_.look_of("a"));
  look("a");
  turns();
  EXPECT_EQ(restarted(), 0U);
  EXPECT_TRUE(marks_.missing().empty());
}

TEST_F(ShardMarksTest, AMarkOfWhichOneCopyWasWrittenIsItsOwnWhenTheOtherCopyHasLeft) {
  come_to_rest();
  look("a");
  const auto mark = marks_.to_write("a", 100);
  put("a", copies_of(*mark).front());
  marks_.doubtful("a");
  look("a");
  const int other = mark->shard->places.back();
  marks_.doubtful("a");
  move({other, other}, "a", "b");
  turns();
  EXPECT_EQ(restarted(), 0U);
  EXPECT_TRUE(marks_.missing().empty());
}

TEST_F(ShardMarksTest, AMarkOfWhichAnotherUpdaterWroteOneCopyIsNoLossWhenTheOtherCopyLeaves) {
  come_to_rest();
  look("a");
  const auto mark = marks_.to_write("a", 100);
  put("a", copies_of(*mark).front());
  start_again();
  look("a");
  look("b");
  ASSERT_TRUE(marks_.to_write("a", 100));  // which fails
  marks_.doubtful("a");
  const int other = mark->shard->places.back();
  shards_.at("a").look.migrating = {other, other};
  shards_.at("b").look.importing = {other, other};
  turns();
  EXPECT_EQ(restarted(), 0U);
  EXPECT_TRUE(marks_.missing().empty());
}

TEST_F(ShardMarksTest, ACopyIsObsoleteOnceItsShardIsKnownToHaveANewerMark) {
  come_to_rest();
  const MarkValue older = *marks_.confirmed("a");
  EXPECT_FALSE(marks_.is_obsolete("b", older));
  turn("a");
  EXPECT_TRUE(marks_.is_obsolete("b", older));  // it came with its slot
  EXPECT_TRUE(marks_.is_obsolete("a", older));
  marks_.doubtful("a");
  EXPECT_FALSE(marks_.is_obsolete("b", older));
  MarkValue of_another = older;
  of_another.shard->node = of_another.shard->replication = "c";
  EXPECT_FALSE(marks_.is_obsolete("b", of_another));
}

TEST_F(ShardMarksTest, MarksAreReadAgainWhereASlotArrivesThatMayHoldAnOlderOne) {
  marks_ =
      ShardMarks(0, 100, all_, SlotSet(2, 2) | SlotSet(5, 5) | SlotSet(8, 8) | SlotSet(11, 11));
  marks_.set_nodes(nodes());
  come_to_rest();
  const auto must_read = [this] {
    marks_.looked(shards_.at("b").look, shards_.at("b").epoch);
    return marks_.must_read("b");
  };
  move({0, 1}, "a", "b");
  EXPECT_FALSE(must_read());
  move({2, 2}, "a", "b");
  EXPECT_TRUE(must_read());
  turns();
  EXPECT_FALSE(must_read());
  EXPECT_EQ(restarted(), 0U);
  EXPECT_TRUE(marks_.missing().empty());
}

TEST_F(ShardMarksTest, WhatWasNamedAndNotWrittenYetIsReadAgainWhereItsShardIsRestored) {
  come_to_rest();
  shards_.at("a").marks.clear();
  marks_.doubtful("a");
  marks_.taken(110);
  turn("a", 100);
  turns();
  marks_.filled(all_, {0, 110}, marks_.stamp());
  look("a");
  marks_.taken(120);
  shards_.at("a").look.replication = "r-a2";
  ++shards_.at("a").epoch;
  turn("a", 120);
  turn("a", 120);
  const Gaps missing = marks_.missing().of({0, 5});
  ASSERT_FALSE(missing.empty());
  EXPECT_EQ(missing.back().to, 120);
}

}  // namespace shard_marks_seeds_test
}  // namespace fcap::updater
