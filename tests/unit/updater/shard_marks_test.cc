// What the marks of a cluster's shards say, case by case; ShardModel tries all of them together.
#include "updater/pipeline/shard_marks.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fcap::updater {
namespace {

// Two masters, a and b, of twelve slots; 100 offsets were read before.
class ShardMarksTest : public ::testing::Test {
 protected:
  ShardMarksTest() { marks_.set_nodes(nodes()); }

  struct Shard {
    ShardLook look;
    std::uint64_t epoch = 1;
    std::vector<MarkValue> marks = {};
  };
  [[nodiscard]] std::vector<std::string> nodes() const {
    std::vector<std::string> all;
    for (const auto& [node, shard] : shards_) all.push_back(node);
    return all;
  }
  // Asks a shard, and reads its marks if they must be read.
  void look(const std::string& node) {
    const Shard& shard = shards_.at(node);
    marks_.looked(shard.look, shard.epoch);
    if (marks_.must_read(node)) marks_.found(node, shard.epoch, shard.marks);
  }
  // The same, and writes its next mark.
  void turn(const std::string& node, std::int64_t position = 100) {
    look(node);
    const auto mark = marks_.to_write(node, position);
    if (!mark) return;
    shards_.at(node).marks = {*mark};
    marks_.written(node, shards_.at(node).epoch);
  }
  void turns(int count = 3) {
    for (int i = 0; i < count; ++i) {
      for (const std::string& node : nodes()) turn(node);
    }
  }
  // As after a while: every mark names its slots and has no gap.
  void come_to_rest() {
    turns();
    marks_.filled(all_, {0, 100}, marks_.stamp());
    turns();
    ASSERT_TRUE(marks_.settled(100));
    restarted_ = marks_.slots_restarted();
  }
  // Another updater takes the partition over.
  void start_again() {
    marks_ = ShardMarks(0, 100, all_);
    marks_.set_nodes(nodes());
    restarted_ = 0;
  }
  void fail_over(const std::string& node, const std::string& to) {
    Shard shard = shards_.at(node);
    shards_.erase(node);
    shard.look.node = to;
    shard.look.former = std::exchange(shard.look.replication, "r-" + to);
    shard.look.importing = {};
    shard.look.migrating = {};
    shards_[to] = std::move(shard);
    marks_.set_nodes(nodes());
  }
  void move(const SlotSet& slots, const std::string& from, const std::string& to) {
    shards_.at(from).look.owned -= slots;
    shards_.at(from).look.migrating -= slots;
    shards_.at(to).look.owned |= slots;
    shards_.at(to).look.importing -= slots;
  }
  [[nodiscard]] std::size_t restarted() const { return marks_.slots_restarted() - restarted_; }
  [[nodiscard]] std::string slots_of(const std::string& node) const {
    return marks_.confirmed(node)->shard->slots.text();
  }

  const SlotSet all_{0, 11};
  std::map<std::string, Shard> shards_{
      {"a", {{.node = "a", .replication = "r-a", .owned = {0, 5}}}},
      {"b", {{.node = "b", .replication = "r-b", .owned = {6, 11}}}}};
  ShardMarks marks_{0, 100, all_};
  std::size_t restarted_ = 0;
};

MarkValue mark_by(std::string node, std::string replication, std::uint64_t serial) {
  MarkValue mark{.position = 7};
  mark.shard = {std::move(node), std::move(replication), true, serial, {0, 5}, {}};
  return mark;
}

TEST(MarkOfShard, IsTheNewestThatWasWrittenToIt) {
  const ShardLook promoted{.node = "a2", .replication = "r2", .former = "r1"};
  const std::vector<MarkValue> found{mark_by("a1", "r1", 4), mark_by("a1", "r1", 5),
                                     mark_by("b1", "q1", 9), MarkValue{.position = 3}};
  EXPECT_EQ(mark_of_shard(promoted, found), mark_by("a1", "r1", 5));
  const ShardLook restarted{.node = "a1", .replication = "r9"};
  EXPECT_EQ(mark_of_shard(restarted, found), mark_by("a1", "r1", 5));
  const ShardLook other{.node = "c1", .replication = "s1"};
  EXPECT_FALSE(mark_of_shard(other, found)) << "they came with slots that moved here";
}

TEST_F(ShardMarksTest, AFirstMarkClaimsNothing) {
  turn("a");
  EXPECT_EQ(marks_.confirmed("a")->gaps, (Gaps{{0, 100}}));
  EXPECT_EQ(slots_of("a"), "0-5");
  EXPECT_FALSE(marks_.confirmed("a")->shard->arrivals_safe);
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
  move({3, 5}, "a", "b");
  turn("b");
  EXPECT_EQ(slots_of("b"), "6-11");
  turn("a");
  EXPECT_EQ(slots_of("a"), "0-2");
  EXPECT_EQ(marks_.confirmed("a")->shard->partly.text(), "3-5")
      << "until the new owner's mark names them";
  turn("b");
  EXPECT_EQ(slots_of("b"), "3-11");
  turn("a");
  EXPECT_TRUE(marks_.confirmed("a")->shard->partly.empty());
  EXPECT_EQ(restarted(), 0U);
  EXPECT_TRUE(marks_.missing().empty());
}

TEST_F(ShardMarksTest, SlotsThatMovedWhileNoUpdaterRanAreTakenInAtTheMarkThatNamesThem) {
  come_to_rest();
  shards_.at("a").marks[0].position = 60;
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
  shards_.at("a").marks[0].position = 40;
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
  move({3, 5}, "a", "b");
  fail_over("b", "b2");
  start_again();
  turns();
  EXPECT_EQ(marks_.missing().of({3, 5}), (Gaps{{0, 100}}));
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

TEST_F(ShardMarksTest, AShardWhoseConnectionIsLostTakesNoSegment) {
  come_to_rest();
  marks_.give_up({3, 3}, {90, 95});
  marks_.give_up({8, 8}, {50, 55});
  marks_.lost("a");
  const auto segment = marks_.segment(100, 10);
  ASSERT_TRUE(segment);
  EXPECT_EQ(segment->slots, SlotSet(8, 8)) << "the newest of those that can be written";
  turn("a");
  EXPECT_EQ(marks_.segment(100, 10)->slots, SlotSet(3, 3));
}

TEST_F(ShardMarksTest, ASnapshotFromWhileASlotWasAwayDoesNotSpeakForItsKeys) {
  come_to_rest();
  shards_.at("a").look.migrating = {3, 3};
  shards_.at("b").look.importing = {3, 3};
  turn("a");
  const std::vector<MarkValue> snapshot = shards_.at("a").marks;
  EXPECT_EQ(snapshot[0].shard->slots.text(), "0-2,4-5");
  EXPECT_EQ(snapshot[0].shard->partly.text(), "3");
  move({3, 3}, "a", "b");
  turns();
  EXPECT_EQ(slots_of("b"), "3,6-11");
  move({3, 3}, "b", "a");
  turns();
  EXPECT_EQ(slots_of("a"), "0-5");
  EXPECT_EQ(restarted(), 0U);
  shards_.at("a").marks = snapshot;
  shards_.at("a").look.replication = "r-a2";
  ++shards_.at("a").epoch;
  turns();
  EXPECT_EQ(marks_.missing().of({3, 3}), (Gaps{{0, 100}}));
  EXPECT_TRUE(marks_.missing().of({0, 2}).empty());
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

TEST_F(ShardMarksTest, AnAcknowledgementCountsOnlyAfterAMarkOnItsConnection) {
  look("a");
  const std::uint64_t before = marks_.stamp();
  turn("a");
  EXPECT_FALSE(marks_.counts("a", 1, before));
  EXPECT_TRUE(marks_.counts("a", 1, marks_.stamp()));
  EXPECT_FALSE(marks_.counts("a", 2, marks_.stamp()));
  EXPECT_FALSE(marks_.counts("b", 1, marks_.stamp()));
}

TEST_F(ShardMarksTest, WhatIsLostWhileASegmentIsReadStaysMissing) {
  come_to_rest();
  marks_.give_up({0, 8}, {50, 60});
  const auto segment = marks_.segment(100, 5);
  ASSERT_TRUE(segment);
  EXPECT_EQ(segment->offsets, (Gap{55, 60}));
  const std::uint64_t begun = marks_.stamp();
  shards_.at("a").marks[0].position = 40;
  ++shards_.at("a").epoch;
  look("a");
  marks_.filled(segment->slots, segment->offsets, begun);
  EXPECT_EQ(marks_.missing().of({0, 5}), (Gaps{{40, 100}}));
  EXPECT_EQ(marks_.missing().of({6, 8}), (Gaps{{50, 55}}));
}

TEST_F(ShardMarksTest, AMarkThatNobodyKnowsTheOutcomeOfIsReadAndFoundUnharmed) {
  come_to_rest();
  look("a");
  const auto mark = marks_.to_write("a", 100);
  shards_.at("a").marks = {*mark};
  marks_.doubtful("a");
  EXPECT_TRUE(marks_.must_read("a"));
  look("a");
  EXPECT_TRUE(marks_.missing().empty());
  EXPECT_TRUE(marks_.counts("a", 1, marks_.stamp()));
}

}  // namespace
}  // namespace fcap::updater
