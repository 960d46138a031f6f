#include "updater/pipeline/partition_set.h"

#include <algorithm>

#include "tests/unit/updater/support/partition_set_fixture.h"

namespace fcap::updater {
namespace partition_set_test {

using Fault = testing::FaultStore::Fault;
using std::chrono::milliseconds;

class PartitionSetTest : public testing::PartitionSetFixture {};
using PartitionSetDeathTest = PartitionSetTest;

// Complete, the offsets may be committed at any moment, and in a crash the letter would be lost.
TEST_F(PartitionSetDeathTest, ADeadLetterIsOpenedBeforeItsOffsetsAreDone) {
  set_mark(100);
  assign();
  const Batch::BatchOffsets range = take(100, 110);
  set_.open_letter(0, 105);
  testing::complete(set_, range);
  EXPECT_EXIT(set_.open_letter(0, 105), ::testing::KilledBySignal(SIGABRT), "");
}

TEST_F(PartitionSetTest, BeginsAtTheLowerOfMarkAndCommittedOffset) {
  set_mark(70);
  log_.commits[0] = 100;
  EXPECT_EQ(assign(), 70);
  EXPECT_FALSE(set_.checking());
  EXPECT_EQ(to_place(), Places{});
}

TEST_F(PartitionSetTest, WithoutAMarkBeginsAtTheStartOfRetentionAndWritesOneAtOnce) {
  log_.commits[0] = 100;
  EXPECT_EQ(assign(), 10);
  tick();
  EXPECT_EQ(mark(), "10");
}

TEST_F(PartitionSetTest, NothingIsTakenInBeforeItsMarkIsConfirmed) {
  log_.commits[0] = 100;
  EXPECT_EQ(assign_only(), 10);
  EXPECT_TRUE(set_.checking());
  EXPECT_FALSE(set_.take(0, 10));
  store_.immediate = false;
  tick();
  EXPECT_FALSE(set_.take(0, 10)) << "written, not acknowledged";
  store_.run_all();
  tick();
  EXPECT_FALSE(set_.checking());
  EXPECT_EQ(to_place(), (Places{{0, 10}})) << "what was dropped is read again";
  set_.placed(0);
  EXPECT_TRUE(set_.take(0, 10));
  store_.run_all();
}

TEST_F(PartitionSetTest, RefusedMarksStopReadingAndTheServersWordsAreSaid) {
  set_mark(100);
  assign();
  take(100, 110);
  store_.refuse_exchanges = true;
  settle();
  EXPECT_TRUE(set_.checking()) << "although the mark can be read";
  EXPECT_TRUE(set_.failing());
  EXPECT_FALSE(set_.take(0, 110));
  EXPECT_NE(set_.trouble().find("NOPERM"), std::string::npos) << set_.trouble();
  for (int i = 0; i < 20; ++i) tick();
  EXPECT_TRUE(set_.failing());
  EXPECT_GT(metrics_.mark_failures.value(), 4U);
  EXPECT_TRUE(std::ranges::any_of(
      said_, [](const std::string& line) { return line.find("NOPERM") != std::string::npos; }));
  store_.refuse_exchanges = false;
  settle();
  EXPECT_FALSE(set_.failing());
  EXPECT_EQ(to_place(), (Places{{0, 110}}));
}

TEST_F(PartitionSetTest, AfterAReconnectionNothingIsTakenInBeforeTheNewServerHasTakenAMark) {
  set_mark(100);
  assign();
  ++epoch_;
  store_.refuse_exchanges = true;
  settle();
  EXPECT_FALSE(set_.take(0, 100));
  store_.refuse_exchanges = false;
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 100}}));
}

TEST_F(PartitionSetTest, LostDataIsSaidInPlainWords) {
  set_mark(100);
  assign();
  testing::complete(set_, take(100, 110));
  settle();
  store_.records().clear();
  ++epoch_;
  settle();
  EXPECT_TRUE(std::ranges::any_of(said_, [](const std::string& line) {
    return line ==
           "Redis has lost data (no mark where offset 110 was written): partition 0 is read again "
           "from 10, 100 messages";
  })) << ::testing::PrintToString(said_);
}

TEST_F(PartitionSetTest, MarksOnlyWhatIsDone) {
  set_mark(100);
  assign();
  const auto first = take(100, 110);
  const auto second = take(110, 120);
  tick();
  EXPECT_EQ(mark(), "100");
  testing::complete(set_, second);
  tick();
  EXPECT_EQ(mark(), "100");
  testing::complete(set_, first);
  tick();
  EXPECT_EQ(mark(), "120");
}

TEST_F(PartitionSetTest, ALetterUnderWayHoldsTheMarkAndTheCommitButNotTheReading) {
  set_mark(100);
  assign();
  const auto range = take(100, 110);
  const std::uint64_t generation = set_.open_letter(0, 104);
  testing::complete(set_, range);
  settle();
  EXPECT_EQ(set_.low_water(0), 104);
  EXPECT_EQ(mark(), "104");
  EXPECT_TRUE(set_.take(0, 110));
  set_.close_letter(0, generation, 104);
  settle();
  EXPECT_EQ(set_.low_water(0), 110);
  EXPECT_EQ(mark(), "110");
}

TEST_F(PartitionSetTest, APartitionThatIsHeldIsReadOnFromWhereItWasWhenItIsLetGo) {
  set_mark(100);
  assign();
  take(100, 110);
  set_.hold(0, true);
  EXPECT_FALSE(set_.take(0, 110));
  EXPECT_EQ(to_place(), Places{});
  set_.hold(0, false);
  EXPECT_EQ(to_place(), (Places{{0, 110}}));
}

TEST_F(PartitionSetTest, CommitsWhatIsDoneOnce) {
  set_mark(100);
  assign();
  testing::complete(set_, take(100, 110));
  std::vector<PartitionOffset> offsets;
  set_.collect_commits(offsets);
  ASSERT_EQ(offsets.size(), 1U);
  EXPECT_EQ(offsets[0].offset, 110);
  set_.collect_commits(offsets);
  EXPECT_TRUE(offsets.empty());
  set_.forget_commits();
  set_.collect_commits(offsets);
  EXPECT_EQ(offsets.size(), 1U);
}

TEST_F(PartitionSetTest, AMarkThatFellBackRewindsToItAndOldWorkCountsNoMore) {
  set_mark(100);
  assign();
  testing::complete(set_, take(100, 110));
  tick();
  const auto before = take(110, 120);
  set_mark(50);  // an old snapshot came back
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 50}}));
  EXPECT_FALSE(set_.take(0, 120)) << "nothing is read before the consumer was moved";
  set_.placed(0);
  testing::complete(set_, before);
  EXPECT_EQ(set_.low_water(0), 50);
  testing::complete(set_, take(50, 60));
  EXPECT_EQ(set_.low_water(0), 60);
  tick();
  EXPECT_EQ(mark(), "60");
  EXPECT_EQ(metrics_.rewinds.value(), 1U);
  EXPECT_EQ(metrics_.rewound_messages.value(), 70U);
}

TEST_F(PartitionSetTest, AnEmptiedServerIsNoticedWithoutTrafficAndWithoutReconnection) {
  set_mark(100);
  assign();
  tick();
  store_.records().clear();
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 10}}));
  EXPECT_EQ(mark(), "10") << "nothing may claim that the lost events are there";
}

TEST_F(PartitionSetTest, AReconnectionReadsAgainWhatWasNotMarked) {
  set_mark(100);
  assign();
  tick();
  testing::complete(set_, take(100, 150));  // acknowledged, not marked yet
  ++epoch_;
  settle();
  EXPECT_EQ(mark(), "100");
  EXPECT_EQ(to_place(), (Places{{0, 100}}));
}

TEST_F(PartitionSetTest, AReconnectionWithEverythingMarkedMovesNothing) {
  set_mark(100);
  assign();
  testing::complete(set_, take(100, 150));
  settle();
  ++epoch_;
  tick();
  EXPECT_TRUE(set_.checking());
  settle();
  EXPECT_FALSE(set_.checking());
  EXPECT_EQ(to_place(), Places{});
  EXPECT_TRUE(set_.take(0, 150));
}

TEST_F(PartitionSetTest, AMarkAcknowledgedAcrossAReconnectionIsNotBelieved) {
  set_mark(100);
  assign();
  tick();
  testing::complete(set_, take(100, 150));
  store_.immediate = false;
  tick();            // takes the first answer in, writes 150
  ++epoch_;          // the old master is gone with the events …
  store_.run_all();  // … and the new one executes the mark
  store_.immediate = true;
  EXPECT_EQ(mark(), "150");
  settle();
  EXPECT_EQ(mark(), "100") << "the mark is taken back";
  EXPECT_EQ(to_place(), (Places{{0, 100}}));
}

TEST_F(PartitionSetTest, AMarkWhoseAnswerWasLostIsFoundAgain) {
  set_mark(100);
  assign();
  tick();
  testing::complete(set_, take(100, 150));
  store_.next_fault = [] { return Fault::kReplyLost; };
  tick();
  store_.next_fault = nullptr;
  tick();
  EXPECT_TRUE(set_.checking());
  settle();
  EXPECT_FALSE(set_.checking());
  EXPECT_EQ(to_place(), Places{});
  EXPECT_EQ(mark(), "150");
  EXPECT_EQ(metrics_.rewinds.value(), 0U);
}

TEST_F(PartitionSetTest, WithoutAnAnswerFromRedisNothingIsReadUntilThereIsOne) {
  set_mark(70);
  log_.commits[0] = 100;
  store_.next_fault = [] { return Fault::kLost; };
  EXPECT_EQ(assign(), PartitionOffset::kNone);
  EXPECT_TRUE(set_.checking());
  EXPECT_FALSE(set_.take(0, 100));
  settle();
  EXPECT_TRUE(set_.checking());
  EXPECT_TRUE(set_.failing());
  store_.next_fault = nullptr;
  settle();
  EXPECT_FALSE(set_.checking());
  EXPECT_FALSE(set_.failing());
  EXPECT_EQ(to_place(), (Places{{0, 70}}));
  set_.placed(0);
  EXPECT_TRUE(set_.take(0, 70));
}

TEST_F(PartitionSetTest, WithoutAnAnswerFromKafkaNothingIsReadUntilThereIsOne) {
  log_.silent = true;
  EXPECT_EQ(assign(), PartitionOffset::kNone);
  settle();
  EXPECT_TRUE(set_.checking());
  log_.silent = false;
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 10}}));
}

TEST_F(PartitionSetTest, WhileKafkaHasNotAnsweredEverythingElseGoesOn) {
  for (const std::int32_t partition : {0, 1}) set_mark(100, partition);
  std::vector<PartitionOffset> both{{0, PartitionOffset::kNone}, {1, PartitionOffset::kNone}};
  set_.assign(both);
  confirm();
  for (const std::int32_t partition : {0, 1}) set_.placed(partition);
  log_.unanswered = true;
  store_.records().erase(key(0));
  settle();
  EXPECT_FALSE(set_.checking());
  EXPECT_FALSE(set_.take(0, 100));
  testing::complete(set_, take(100, 110, 1));
  settle();
  EXPECT_EQ(mark(1), "110");
  log_.unanswered = false;
  settle();
  EXPECT_FALSE(set_.checking());
  EXPECT_EQ(to_place(), (Places{{0, 10}}));
}

TEST_F(PartitionSetTest, AnAssignmentDoesNotWaitLongForKafka) {
  set_mark(100);
  log_.unanswered = true;
  EXPECT_EQ(assign(), PartitionOffset::kNone);
  EXPECT_TRUE(set_.checking());
  log_.unanswered = false;
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 100}}));
}

TEST_F(PartitionSetTest, DoubtedRecordsAreReadAgainWhateverTheMarkSays) {
  set_mark(100);
  assign();
  testing::complete(set_, take(100, 110));
  settle();
  set_.recovery().doubt_all();
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 10}}));
  EXPECT_EQ(mark(), "10");
}

TEST_F(PartitionSetTest, KafkaIsAskedForAllPartitionsTogether) {
  constexpr std::int32_t kMany = 300;
  std::vector<PartitionOffset> many;
  for (std::int32_t partition = 0; partition < kMany; ++partition) {
    set_mark(100, partition);
    many.push_back({partition, PartitionOffset::kNone});
  }
  set_.assign(many);
  EXPECT_EQ(log_.questions, 1U);
  settle();
  store_.records().clear();
  settle();
  EXPECT_EQ(log_.questions, 2U);
  EXPECT_EQ(log_.asked, 2U * kMany);
  EXPECT_EQ(to_place().size(), many.size());
}

TEST_F(PartitionSetTest, ALogThatWasRecreatedIsFollowedAndTheMarkFalls) {
  set_mark(100);
  log_.commits[0] = 100;
  assign();
  tick();
  testing::complete(set_, take(0, 5));
  settle();
  EXPECT_EQ(set_.low_water(0), 5);
  EXPECT_EQ(mark(), "5");
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
}

TEST_F(PartitionSetTest, WorkOfAnEarlierAssignmentCountsNoMore) {
  set_mark(100);
  assign();
  const auto before = take(100, 200);
  const std::vector<PartitionOffset> all{{0, PartitionOffset::kNone}};
  set_.revoke(all);
  EXPECT_FALSE(set_.take(0, 200));
  assign();
  testing::complete(set_, before);
  EXPECT_EQ(set_.low_water(0), 100);
}

TEST_F(PartitionSetTest, AfterAPauseReadingGoesOnBehindWhatWasTaken) {
  set_mark(100);
  assign();
  take(100, 110);
  set_.seek_all_again();
  EXPECT_EQ(to_place(), (Places{{0, 110}}));
  EXPECT_FALSE(set_.take(0, 115));
  set_.placed(0);
  EXPECT_TRUE(set_.take(0, 110));
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
}

TEST_F(PartitionSetTest, WhatExpiredDuringAPauseIsCountedAsAReset) {
  set_mark(100);
  assign();
  take(100, 110);
  set_.seek_all_again();
  set_.placed(0);
  log_.log_start = 500;
  EXPECT_TRUE(set_.take(0, 500));
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  EXPECT_TRUE(set_.take(0, 502)) << "within a stretch, offsets may be left out";
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
}

// Kafka's client says that it has gone back to the beginning of a log, but not of which one.
TEST_F(PartitionSetTest, WhatExpiresWhileItIsReadIsCountedAsAReset) {
  set_mark(100);
  assign();
  take(100, 110);
  log_.log_start = 500;
  EXPECT_TRUE(set_.take(0, 120)) << "of a transaction, or compacted";
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 0U) << "nobody has said that anything has expired";
  set_.offsets_were_reset(now_);
  EXPECT_TRUE(set_.take(0, 121)) << "fetched before";
  EXPECT_TRUE(set_.take(0, 500));
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  EXPECT_EQ(set_.take_expired().size(), 1U);
  log_.log_start = 700;
  EXPECT_TRUE(set_.take(0, 700)) << "in the same minute";
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 2U);
  tick(std::chrono::minutes{1});
  log_.log_start = 800;
  EXPECT_TRUE(set_.take(0, 800)) << "what was fetched before took long";
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 3U);
  set_.caught_up(now_);
  log_.log_start = 1000;
  EXPECT_TRUE(set_.take(0, 900));
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 3U);
}

// What is asked about one jump may be answered from before the next.
TEST_F(PartitionSetTest, AJumpBehindAnotherIsAskedAboutOnItsOwn) {
  set_mark(100);
  assign();
  set_.offsets_were_reset(now_);
  take(100, 110);
  EXPECT_TRUE(set_.take(0, 111));
  log_.unanswered = true;
  tick();
  EXPECT_TRUE(set_.take(0, 200));
  log_.unanswered = false;
  log_.log_start = 105;
  tick();
  log_.log_start = 200;
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
}

TEST_F(PartitionSetTest, OffsetsThatNoMessageHasAreNoReset) {
  set_mark(100);
  assign();
  log_.log_start = 100;
  EXPECT_TRUE(set_.take(0, 101)) << "100 was the mark of a transaction's end";
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
}

TEST_F(PartitionSetTest, BehindTheLastMessageTheEndIsReachedOnceThatMessageIsDone) {
  set_mark(100);
  assign();
  const auto range = take(100, 110);
  set_.reached_end(0, 112);
  EXPECT_EQ(set_.low_water(0), 100);
  testing::complete(set_, range);
  EXPECT_EQ(set_.low_water(0), 112);
  settle();
  EXPECT_EQ(mark(), "112");
  set_.reached_end(0, 105);
  EXPECT_EQ(set_.low_water(0), 112) << "of an end from before";
  EXPECT_TRUE(set_.take(0, 112));
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
}

TEST_F(PartitionSetTest, AnEndThatWasReachedBeforeThePartitionIsMovedSaysNothing) {
  set_mark(100);
  assign();
  testing::complete(set_, take(100, 110));
  set_.seek_all_again();
  set_.reached_end(0, 112);
  EXPECT_EQ(set_.low_water(0), 110);
}

}  // namespace partition_set_test
}  // namespace fcap::updater
