// What the marks of a cluster's shards say, case by case; ShardModel tries all of them together.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/shard_marks_fixture.h"

namespace fcap::updater {
namespace shard_marks_test {

using testing::ShardMarksTest;

TEST_F(ShardMarksTest, AFirstMarkClaimsNothing) {
  marks_.lost("b");
  turn("a");
  EXPECT_EQ(marks_.confirmed("a")->gaps, (Gaps{{0, 100}}));
  EXPECT_EQ(slots_of("a"), "0-5");
  EXPECT_FALSE(marks_.confirmed("a")->shard->arrivals_safe);
}

TEST_F(ShardMarksTest, AFirstMarkWaitsUntilTheOthersWereReadOrAreAway) {
  turn("a");
  EXPECT_FALSE(marks_.confirmed("a"));
  look("b");
  turn("a");
  EXPECT_TRUE(marks_.confirmed("a"));
}

TEST_F(ShardMarksTest, MarksThatWereFoundAgainAreTakenOver) {
  come_to_rest();
  start_again();
  turns();
  EXPECT_TRUE(marks_.settled(100));
  EXPECT_EQ(restarted(), 0U);
}

TEST_F(ShardMarksTest, ASlotThatArrivedIsTakenInWhenTheOtherMarksWereFoundUnharmed) {
  come_to_rest();
  move({0, 2}, "a", "b");
  turn("b");
  EXPECT_EQ(slots_of("b"), "6-11");
  turn("a");
  EXPECT_EQ(slots_of("a"), "3-5");
  EXPECT_EQ(marks_.confirmed("a")->shard->partly.text(), "0-2")
      << "until the new owner's mark names them";
  turn("b");
  EXPECT_EQ(slots_of("b"), "0-2,6-11");
  turn("a");
  EXPECT_TRUE(marks_.confirmed("a")->shard->partly.empty());
  EXPECT_EQ(restarted(), 0U);
  EXPECT_TRUE(marks_.missing().empty());
}

TEST_F(ShardMarksTest, SlotsThatMovedWhileNoUpdaterRanAreTakenInAtTheMarkThatNamesThem) {
  come_to_rest();
  lower("a", 60);
  move({3, 4}, "a", "b");
  start_again();
  turns();
  EXPECT_EQ(slots_of("b"), "3-4,6-11");
  EXPECT_EQ(marks_.missing().of({3, 4}), (Gaps{{60, 100}}));
  EXPECT_TRUE(marks_.missing().of({6, 11}).empty()) << "the others of that shard are there";
  EXPECT_EQ(marks_.confirmed("b")->gaps, (Gaps{{60, 100}}));
  EXPECT_EQ(restarted(), 0U);
}

TEST_F(ShardMarksTest, AReplicaThatLagsIsReadAgainFromItsMarkForItsOwnUsersOnly) {
  come_to_rest();
  lower("a", 40);
  fail_over("a", "a2");
  turns();
  EXPECT_EQ(marks_.missing().of({0, 5}), (Gaps{{40, 100}}));
  EXPECT_TRUE(marks_.missing().of({6, 11}).empty());
  EXPECT_EQ(restarted(), 0U);
}

TEST_F(ShardMarksTest, AnEmptiedShardIsReadAgainForItsOwnUsersOnly) {
  come_to_rest();
  shards_.at("a").marks.clear();
  marks_.doubtful("a");
  turns();
  EXPECT_EQ(marks_.missing().of({0, 5}), (Gaps{{0, 100}}));
  EXPECT_TRUE(marks_.missing().of({6, 11}).empty());
}

TEST_F(ShardMarksTest, SlotsThatCameToAShardThatThenFailedOverGoBackToTheStart) {
  come_to_rest();
  move({0, 2}, "a", "b");
  fail_over("b", "b2");
  start_again();
  turns();
  EXPECT_EQ(marks_.missing().of({0, 2}), (Gaps{{0, 100}}));
  EXPECT_EQ(restarted(), 3U);
}

TEST_F(ShardMarksTest, SlotsThatPassedThroughAnEmptiedShardGoBackToTheStart) {
  shards_["c"] = {{.node = "c", .replication = "r-c"}};
  marks_.set_nodes(nodes());
  come_to_rest();
  move({3, 3}, "a", "b");
  shards_.at("b").marks.clear();
  marks_.doubtful("b");
  move({3, 3}, "b", "c");
  turns();
  EXPECT_EQ(marks_.missing().of({3, 3}), (Gaps{{0, 100}}));
}

TEST_F(ShardMarksTest, KeysOnTheirWayToAMasterThatIsReplacedGoBackToTheStart) {
  come_to_rest();
  shards_.at("a").look.migrating = {3, 3};
  shards_.at("b").look.importing = {3, 3};
  turns();
  EXPECT_TRUE(marks_.missing().empty());
  fail_over("b", "b2");
  turns();
  EXPECT_EQ(marks_.missing().of({3, 3}), (Gaps{{0, 100}}));
  EXPECT_EQ(marks_.confirmed("a")->gaps, (Gaps{{0, 100}})) << "the mark that names the slot";
}

TEST_F(ShardMarksTest, KeysThatReachedAMasterThatIsReplacedBeforeItsSlotWasGivenUpAreReadAgain) {
  come_to_rest();
  shards_.at("a").look.migrating = {3, 3};
  shards_.at("b").look.importing = {3, 3};
  turns();
  shards_.at("b").look.importing = {};
  shards_.at("b").look.owned = SlotSet(3, 3);
  shards_.at("b").look.owned |= SlotSet(6, 11);
  turns();
  EXPECT_TRUE(marks_.missing().empty()) << "two masters say that they own it";
  shards_.at("b").look.owned -= SlotSet(3, 3);
  fail_over("b", "b2");
  shards_.at("a").look.migrating = {};
  turns();
  EXPECT_EQ(marks_.missing().of({3, 3}), (Gaps{{0, 100}})) << "the promoted replica may lack them";
}

TEST_F(ShardMarksTest, AShardWhoseConnectionIsLostTakesNoPiece) {
  come_to_rest();
  marks_.give_up({3, 3}, {90, 95});
  marks_.give_up({8, 8}, {50, 55});
  marks_.lost("a");
  const auto piece = marks_.piece(100, 10);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->slots, SlotSet(8, 8)) << "the newest of those that can be written";
  turn("a");
  EXPECT_EQ(marks_.piece(100, 10)->slots, SlotSet(3, 3));
}

TEST_F(ShardMarksTest, ASnapshotFromWhileASlotWasAwayDoesNotSpeakForItsKeys) {
  come_to_rest();
  shards_.at("a").look.migrating = {1, 1};
  shards_.at("b").look.importing = {1, 1};
  turn("a");
  const std::vector<MarkValue> snapshot = shards_.at("a").marks;
  EXPECT_EQ(snapshot.back().shard->slots.text(), "0,2-5");
  EXPECT_EQ(snapshot.back().shard->partly.text(), "1");
  move({1, 1}, "a", "b");
  turns();
  EXPECT_EQ(slots_of("b"), "1,6-11");
  move({1, 1}, "b", "a");
  turns();
  EXPECT_EQ(slots_of("a"), "0-5");
  EXPECT_EQ(restarted(), 0U);
  shards_.at("a").marks = snapshot;
  shards_.at("a").look.replication = "r-a2";
  ++shards_.at("a").epoch;
  turns();
  EXPECT_EQ(marks_.missing().of({1, 1}), (Gaps{{0, 100}}));
  EXPECT_TRUE(marks_.missing().of({2, 5}).empty());
}

TEST_F(ShardMarksTest, AnUpdaterThatStartsWhileASlotMovesReadsNothingAgain) {
  come_to_rest();
  shards_.at("a").look.migrating = {3, 3};
  shards_.at("b").look.importing = {3, 3};
  turns();
  start_again();
  turns();
  EXPECT_EQ(restarted(), 0U);
  EXPECT_TRUE(marks_.missing().empty());
  EXPECT_EQ(marks_.confirmed("a")->shard->partly.text(), "3");
}

TEST_F(ShardMarksTest, AnUpdaterThatStopsBeforeItAskedEveryShardLeavesASlotOnTheMoveNamed) {
  come_to_rest();
  shards_.at("a").look.migrating = {3, 3};
  shards_.at("b").look.importing = {3, 3};
  turns();
  start_again();
  turn("a");
  EXPECT_EQ(marks_.confirmed("a")->shard->partly.text(), "3");
  move({3, 3}, "a", "b");
  start_again();
  turns();
  EXPECT_EQ(restarted(), 0U);
  EXPECT_TRUE(marks_.missing().empty());
  EXPECT_EQ(slots_of("b"), "3,6-11");
}

TEST_F(ShardMarksTest, AnOldMarkThatComesBackToAnEmptiedShardClaimsNothing) {
  come_to_rest();
  const std::vector<MarkValue> old = shards_.at("a").marks;
  turns();
  shards_.at("a").marks = old;
  marks_.doubtful("a");
  look("a");
  EXPECT_EQ(marks_.missing().of({0, 5}), (Gaps{{0, 100}}));
  EXPECT_TRUE(marks_.missing().of({6, 11}).empty());
}

TEST_F(ShardMarksTest, WhatIsGivenUpIsAGapOfEveryMarkThatNamesTheSlot) {
  come_to_rest();
  marks_.taken(120);
  marks_.give_up({4, 4}, {105, 110});
  turn("a", 107);
  EXPECT_EQ(marks_.confirmed("a")->gaps, (Gaps{{105, 107}}));
  turn("a", 120);
  turn("b", 120);
  EXPECT_EQ(marks_.confirmed("a")->gaps, (Gaps{{105, 110}}));
  EXPECT_TRUE(marks_.confirmed("b")->gaps.empty());
}

TEST_F(ShardMarksTest, AShardThatWasAwayForLongIsFilledInFewPieces) {
  constexpr int kBatches = 5000;
  come_to_rest();
  marks_.lost("a");
  // Every second batch has an event of one of its users.
  std::int64_t next = 100;
  for (int i = 0; i < kBatches; ++i, next += 10) {
    marks_.taken(next + 10);
    if (i % 2 == 0) marks_.give_up({0, 5}, {next, next + 10});
  }
  turn("a", next);
  int pieces = 0;
  while (const auto piece = marks_.piece(next, next)) {
    marks_.filled(piece->slots, piece->offsets, marks_.stamp());
    ++pieces;
  }
  EXPECT_TRUE(marks_.missing().empty());
  EXPECT_GT(pieces, 0);
  EXPECT_LE(pieces, 64);
}

TEST_F(ShardMarksTest, AnAcknowledgementCountsOnlyAfterAMarkOnItsConnection) {
  look("a");
  look("b");
  const std::uint64_t before = marks_.stamp();
  turn("a");
  EXPECT_FALSE(marks_.counts("a", 1, before));
  EXPECT_TRUE(marks_.counts("a", 1, marks_.stamp()));
  EXPECT_FALSE(marks_.counts("a", 2, marks_.stamp()));
  EXPECT_FALSE(marks_.counts("b", 1, marks_.stamp()));
}

TEST_F(ShardMarksTest, WhatIsLostWhileAPieceIsReadStaysMissing) {
  come_to_rest();
  marks_.give_up({0, 8}, {50, 60});
  const auto piece = marks_.piece(100, 5);
  ASSERT_TRUE(piece);
  EXPECT_EQ(piece->offsets, (Gap{55, 60}));
  const std::uint64_t begun = marks_.stamp();
  lower("a", 40);
  ++shards_.at("a").epoch;
  look("a");
  marks_.filled(piece->slots, piece->offsets, begun);
  EXPECT_EQ(marks_.missing().of({0, 5}), (Gaps{{40, 100}}));
  EXPECT_EQ(marks_.missing().of({6, 8}), (Gaps{{50, 55}}));
}

TEST_F(ShardMarksTest, WhatIsDoubtedWhileAPieceIsReadStaysMissing) {
  come_to_rest();
  marks_.give_up({0, 5}, {50, 60});
  const auto piece = marks_.piece(100, 100);
  ASSERT_TRUE(piece);
  const std::uint64_t begun = marks_.stamp();
  marks_.doubt();
  marks_.filled(piece->slots, piece->offsets, begun);
  EXPECT_EQ(marks_.missing().of({0, 5}), (Gaps{{0, 100}}));
  EXPECT_EQ(marks_.missing().of({6, 11}), (Gaps{{0, 100}}));
}

TEST_F(ShardMarksTest, ADoubtReachesFromTheStartOfTheRetentionToWhatWasTakenLast) {
  marks_ = ShardMarks(40, 100, all_);
  marks_.set_nodes(nodes());
  turns();
  marks_.filled(all_, {0, 100}, marks_.stamp());
  marks_.taken(150);
  marks_.doubt();
  EXPECT_EQ(marks_.missing().of(all_), (Gaps{{40, 150}}));
}

TEST_F(ShardMarksTest, MarksThatWereReadBeforeALaterLookSayNothingOfWhatItSaw) {
  come_to_rest();
  ++shards_.at("a").epoch;
  look_once("b");
  const Shard a = shards_.at("a");
  marks_.looked(a.look, a.epoch);
  const std::uint64_t look_at_a = marks_.look_of("a");
  // Its marks are read here, and judged below. Meanwhile it is emptied, and its slots leave.
  move({0, 2}, "a", "b");
  shards_.at("a").marks.clear();
  look_once("b");
  marks_.looked(shards_.at("a").look, a.epoch);
  marks_.found("a", a.epoch, a.marks, look_at_a);
  EXPECT_TRUE(marks_.must_read("a"));
  turn("b");
  EXPECT_EQ(slots_of("b"), "6-11") << "nothing shows yet that their keys had been there";
  turns();
  EXPECT_EQ(marks_.missing().of({0, 2}), (Gaps{{0, 100}}));
}

TEST_F(ShardMarksTest, AMarkThatNobodyKnowsTheOutcomeOfIsReadAndFoundUnharmed) {
  come_to_rest();
  look("a");
  const auto mark = marks_.to_write("a", 100);
  shards_.at("a").marks = copies_of(*mark);
  marks_.doubtful("a");
  EXPECT_TRUE(marks_.must_read("a"));
  look("a");
  EXPECT_TRUE(marks_.missing().empty());
  EXPECT_TRUE(marks_.counts("a", 1, marks_.stamp()));
}

}  // namespace shard_marks_test
}  // namespace fcap::updater
