// Partitions for which Kafka cannot say what must be known before they are read, beside others.
#include <limits>

#include "tests/unit/updater/support/fake_looks.h"
#include "tests/unit/updater/support/partition_set_fixture.h"

namespace fcap::updater {
namespace partition_waits_test {

using std::chrono::milliseconds;

class PartitionWaits : public testing::PartitionSetFixture {
 protected:
  using PartitionSetFixture::PartitionSetFixture;
  using Ends = std::vector<std::pair<std::int32_t, std::optional<std::int64_t>>>;

  std::vector<PartitionOffset> assign_both() {
    std::vector<PartitionOffset> both{{0, PartitionOffset::kNone}, {1, PartitionOffset::kNone}};
    set_.assign(both);
    return both;
  }
  // Both are read from 100 on.
  void begin_both() {
    for (const std::int32_t partition : {0, 1}) set_mark(100, partition);
    assign_both();
    confirm();
  }
  // Beyond the longest wait between two attempts.
  void settle_long() {
    for (int i = 0; i < 3; ++i) settle();
  }
  void place_all() {
    for (const auto& [partition, offset] : to_place()) set_.placed(partition);
  }
  Ends gap_ends() {
    std::vector<GapEnd> listed;
    set_.recovery().list_gap_ends(listed);
    Ends ends;
    ends.reserve(listed.size());
    for (const GapEnd& end : listed) ends.emplace_back(end.partition, end.to);
    return ends;
  }
  void fill_all() {
    std::vector<GapPiece> pieces;
    for (set_.recovery().list_pieces(pieces); !pieces.empty();
         set_.recovery().list_pieces(pieces)) {
      for (const GapPiece& piece : pieces) ASSERT_TRUE(set_.recovery().piece_done(piece));
    }
    settle();
  }
};

// Losses of at least ten messages become gaps.
class PartitionWaitsWithGaps : public PartitionWaits {
 protected:
  static MarkOptions with_gaps() {
    MarkOptions marks = options();
    marks.gap_min = 10;
    return marks;
  }
  PartitionWaitsWithGaps() : PartitionWaits(with_gaps()) {}
};

TEST_F(PartitionWaits, OneWithoutALeaderStopsNoOtherOne) {
  for (const std::int32_t partition : {0, 1}) set_mark(100, partition);
  log_.without_leader = {1};
  const auto both = assign_both();
  EXPECT_EQ(both[0].offset, 100);
  EXPECT_EQ(both[1].offset, PartitionOffset::kNone);
  settle();
  EXPECT_FALSE(set_.checking());
  EXPECT_TRUE(set_.failing());
  EXPECT_NE(set_.trouble().find("partition 1: cannot find where to begin"), std::string::npos)
      << set_.trouble();
  EXPECT_FALSE(set_.take(1, 100));
  testing::complete(set_, take(100, 110));
  settle();
  EXPECT_EQ(mark(), "110");
  // Redis is another server now: its marks come first.
  ++epoch_;
  tick();
  EXPECT_TRUE(set_.checking());
  settle();
  EXPECT_FALSE(set_.checking());
  log_.without_leader.clear();
  settle_long();
  EXPECT_FALSE(set_.failing());
  EXPECT_EQ(to_place(), (Places{{1, 100}}));
}

TEST_F(PartitionWaits, OneWhoseLogCannotBeLookedAtStopsNoOtherOne) {
  testing::FakeLooks looks;
  looks.low = 100;
  set_.set_log_looks(&looks);
  for (const std::int32_t partition : {0, 1}) set_mark(100, partition);
  looks.silent = {1};
  assign_both();
  settle();
  // Kafka says again and again where it begins, but not whether it is the same log.
  for (int i = 0; i < 20; ++i) {
    tick();
    ASSERT_FALSE(set_.checking());
    ASSERT_TRUE(set_.failing());
  }
  testing::complete(set_, take(100, 110));
  settle();
  EXPECT_EQ(mark(), "110");
  looks.silent.clear();
  settle_long();
  EXPECT_FALSE(set_.failing());
  EXPECT_EQ(to_place(), (Places{{1, 100}}));
  set_.set_log_looks(nullptr);
}

TEST_F(PartitionWaits, OneOfWhichKafkaSaysNothingIsSaidToWait) {
  begin_both();
  log_.unanswered = true;
  store_.records().erase(key(1));
  tick();
  tick(milliseconds{1});
  EXPECT_TRUE(set_.checking()) << "the answer may come soon";
  EXPECT_FALSE(set_.failing());
  settle();
  EXPECT_FALSE(set_.checking());
  EXPECT_TRUE(set_.failing());
  EXPECT_NE(set_.trouble().find("partition 1: Kafka cannot say yet"), std::string::npos)
      << set_.trouble();
  log_.unanswered = false;
  settle();
  EXPECT_FALSE(set_.failing());
  EXPECT_EQ(to_place(), (Places{{1, 10}}));
}

TEST_F(PartitionWaits, AllWaitWhereKafkaCanSayNothingOfAny) {
  log_.silent = true;
  assign_both();
  settle();
  EXPECT_TRUE(set_.checking());
  log_.silent = false;
  settle();
  EXPECT_FALSE(set_.checking());
}

TEST_F(PartitionWaits, OneThatWaitsForRedisAfterKafkaStopsTheOthersAgain) {
  begin_both();
  log_.without_leader = {1};
  store_.records().erase(key(1));
  settle();
  EXPECT_FALSE(set_.checking());
  store_.unreadable_key = key(1);
  settle();
  EXPECT_TRUE(set_.checking());
  store_.unreadable_key.clear();
  log_.without_leader.clear();
  settle_long();
  EXPECT_FALSE(set_.checking());
  EXPECT_EQ(to_place(), (Places{{1, 10}}));
}

TEST_F(PartitionWaits, OneThatIsGivenUpAndTakenOverAgainIsReadOnceItHasALeader) {
  begin_both();
  log_.without_leader = {1};
  store_.records().erase(key(1));
  settle();
  const std::vector<PartitionOffset> waiting{{1, PartitionOffset::kNone}};
  set_.revoke(waiting);
  EXPECT_FALSE(set_.failing());
  std::vector<PartitionOffset> again = waiting;
  set_.assign(again);
  EXPECT_EQ(again[0].offset, PartitionOffset::kNone);
  settle();
  EXPECT_FALSE(set_.checking());
  log_.without_leader.clear();
  settle_long();
  EXPECT_EQ(to_place(), (Places{{1, 10}}));
  set_.placed(1);
  testing::complete(set_, take(10, 20, 1));
  settle();
  EXPECT_EQ(mark(1), "20");
}

TEST_F(PartitionWaits, WhatIsDoubtedMeanwhileIsReadAgainWhateverItsMarkSays) {
  for (const std::int32_t partition : {0, 1}) set_mark(100, partition);
  log_.without_leader = {1};
  assign_both();
  settle();
  set_.recovery().doubt_all();
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 10}}));
  log_.without_leader.clear();
  settle_long();
  EXPECT_EQ(to_place(), (Places{{0, 10}, {1, 10}}));
  EXPECT_EQ(mark(1), "10");
}

TEST_F(PartitionWaits, WhatIsDoubtedOfOneIsReadAgainAlsoAfterItWasGivenUpMeanwhile) {
  begin_both();
  log_.without_leader = {1};
  set_.recovery().doubt_all();
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 10}}));
  place_all();
  std::vector<PartitionOffset> both{{0, PartitionOffset::kNone}, {1, PartitionOffset::kNone}};
  testing::complete(set_, take(10, 110));
  settle();
  set_.revoke(both);
  EXPECT_EQ(mark(0), "110");
  EXPECT_EQ(mark(1), "100");
  log_.without_leader.clear();
  log_.commits[0] = 110;
  both = assign_both();
  EXPECT_EQ(both[0].offset, 110) << "its mark has said that everything was in doubt";
  EXPECT_EQ(both[1].offset, 10);
  settle();
  EXPECT_EQ(mark(1), "10");
  set_.revoke(both);
  set_mark(100, 1);
  both = assign_both();
  EXPECT_EQ(both[1].offset, 100) << "a doubt counts once";
}

// Another updater's mark is found before this one's has said what is doubted.
TEST_F(PartitionWaitsWithGaps, WhatIsDoubtedStaysSoUntilAMarkSaysIt) {
  set_mark(100);
  assign();
  testing::complete(set_, take(100, 120));
  settle();
  set_.recovery().doubt_all();
  tick();  // its mark is read
  tick();
  store_.records()[key(0)].bytes = encode_mark({.position = 125});
  settle();
  EXPECT_EQ(set_.recovery().offsets_missing(), 110);
}

TEST_F(PartitionWaitsWithGaps, OneThatIsDoubtedAtItsAssignmentIsSaidToLackDataAlsoWithAMark) {
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  for (const std::int32_t partition : {0, 1}) set_mark(100, partition);
  log_.without_leader = {1};
  assign_both();
  settle();
  EXPECT_EQ(gap_ends(), (Ends{{0, std::nullopt}}));
  set_.recovery().doubt_all();
  settle_long();
  place_all();
  EXPECT_EQ(gap_ends(), (Ends{{0, 100}, {1, kAll}}));
  log_.without_leader.clear();
  settle_long();
  EXPECT_EQ(gap_ends(), (Ends{{0, 100}, {1, 100}}));
}

TEST_F(PartitionWaitsWithGaps, OneThatHasLostDataIsSaidToLackItAlthoughNobodyKnowsHowMuch) {
  begin_both();
  for (const std::int32_t partition : {0, 1}) testing::complete(set_, take(100, 120, partition));
  settle();
  EXPECT_EQ(gap_ends(), (Ends{{0, std::nullopt}, {1, std::nullopt}}));
  EXPECT_TRUE(set_.gaps_known());
  log_.without_leader = {1};
  store_.records().clear();
  settle();
  place_all();
  EXPECT_EQ(gap_ends(), (Ends{{0, 120}, {1, 120}}));
  fill_all();
  EXPECT_EQ(set_.recovery().offsets_missing(), 0);
  EXPECT_FALSE(set_.gaps_known());
  EXPECT_EQ(gap_ends(), (Ends{{0, std::nullopt}, {1, 120}}));
  log_.without_leader.clear();
  settle_long();
  place_all();
  EXPECT_EQ(set_.recovery().offsets_missing(), 110);
  EXPECT_EQ(gap_ends(), (Ends{{0, std::nullopt}, {1, 120}}));
  fill_all();
  EXPECT_TRUE(set_.gaps_known());
  EXPECT_EQ(gap_ends(), (Ends{{0, std::nullopt}, {1, std::nullopt}}));
}

TEST_F(PartitionWaitsWithGaps, OneThatIsTakenOverIsSaidToLackDataOnlyWithoutAMark) {
  constexpr auto kAll = std::numeric_limits<std::int64_t>::max();
  for (const std::int32_t partition : {0, 1}) set_mark(100, partition);
  log_.without_leader = {1};
  assign_both();
  settle();
  EXPECT_EQ(gap_ends(), (Ends{{0, std::nullopt}}));
  EXPECT_FALSE(set_.gaps_known());
  store_.records().erase(key(1));
  settle_long();
  EXPECT_EQ(gap_ends(), (Ends{{0, std::nullopt}, {1, kAll}}));
  log_.without_leader.clear();
  settle_long();
  EXPECT_EQ(gap_ends(), (Ends{{0, std::nullopt}, {1, 100}}));
  EXPECT_EQ(set_.recovery().offsets_missing(), 90);
}

}  // namespace partition_waits_test
}  // namespace fcap::updater
