#include "updater/pipeline/partition_set.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "fault_store.h"

namespace fcap::updater {
namespace {

using testing::FaultStore;
using Fault = FaultStore::Fault;
using std::chrono::milliseconds;

class FakeLog final : public OffsetSource {
 public:
  Status committed(std::vector<PartitionOffset>& partitions) override {
    if (silent) return Status::error(StatusCode::kUnavailable, "no broker", true);
    for (PartitionOffset& at : partitions) {
      const auto found = commits.find(at.partition);
      at.offset = found == commits.end() ? PartitionOffset::kNone : found->second;
    }
    return {};
  }
  Result<std::int64_t> retention_start(std::int32_t) override {
    if (silent) return Status::error(StatusCode::kUnavailable, "no broker", true);
    return start;
  }
  [[nodiscard]] std::optional<std::int64_t> known_end(std::int32_t partition) const override {
    const auto found = ends.find(partition);
    return found == ends.end() ? std::nullopt : std::optional(found->second);
  }
  std::map<std::int32_t, std::int64_t> commits;
  std::map<std::int32_t, std::int64_t> ends;
  std::int64_t start = 10;
  bool silent = false;
};

class PartitionSetTest : public ::testing::Test {
 protected:
  static std::string key(std::int32_t partition) { return mark_key("p", "g", "t", partition); }
  static MarkOptions options() {
    MarkOptions marks;
    marks.key_prefix = "p";
    marks.group_id = "g";
    marks.topic = "t";
    return marks;
  }

  void set_mark(std::int64_t offset, std::int32_t partition = 0) {
    store_.records()[key(partition)].bytes = std::to_string(offset);
    log_.commits.try_emplace(partition, offset);
  }
  std::string mark(std::int32_t partition = 0) {
    const auto found = store_.records().find(key(partition));
    return found == store_.records().end() ? "none" : found->second.bytes;
  }

  // Assigns partition 0 and gives where it begins.
  std::int64_t assign_only() {
    std::vector<PartitionOffset> partitions{{0, PartitionOffset::kNone}};
    set_.assign(partitions);
    return partitions[0].offset;
  }
  // The same, and its mark is confirmed.
  std::int64_t assign() {
    const std::int64_t offset = assign_only();
    confirm();
    return offset;
  }
  // The mark is written, and its answer seen.
  void confirm() {
    tick();
    tick(milliseconds{1});
  }

  void tick(milliseconds later = milliseconds{1000}) {
    now_ += later;
    set_.tick(now_, instant_from_ms(1'700'000'000'000));
  }

  // Enough turns for whatever is going on: an answer, a check, its answer, a write.
  void settle() {
    for (int i = 0; i < 5; ++i) tick();
  }

  Batch::Range take(std::int64_t first, std::int64_t end) {
    for (std::int64_t offset = first; offset < end; ++offset) {
      EXPECT_TRUE(set_.take(0, offset));
    }
    std::vector<Batch::Range> ranges;
    set_.seal(ranges);
    EXPECT_EQ(ranges.size(), 1U);
    return ranges.at(0);
  }

  std::vector<std::pair<std::int32_t, std::int64_t>> to_place() {
    std::vector<PartitionOffset> offsets;
    set_.to_place(offsets);
    std::vector<std::pair<std::int32_t, std::int64_t>> all;
    all.reserve(offsets.size());
    for (const PartitionOffset& at : offsets) all.emplace_back(at.partition, at.offset);
    return all;
  }
  using Places = std::vector<std::pair<std::int32_t, std::int64_t>>;

  FaultStore store_;
  FakeLog log_;
  Metrics metrics_;
  std::uint64_t epoch_ = 1;
  std::vector<std::string> said_;
  PartitionSet set_{
      store_,   [this] { return epoch_; },
      log_,     options(),
      metrics_, [this](LogLevel, std::string_view text) { said_.emplace_back(text); }};
  PartitionSet::Clock::time_point now_ = PartitionSet::Clock::now();
};

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

TEST_F(PartitionSetTest, AMarkOfATopicThatWasRecreatedFallsBeforeAnythingIsRead) {
  set_mark(1000);
  log_.commits.clear();
  EXPECT_EQ(assign(), 10);
  EXPECT_EQ(mark(), "10");
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  EXPECT_TRUE(set_.take(0, 10));
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

TEST_F(PartitionSetTest, MarksOnlyWhatIsDone) {
  set_mark(100);
  assign();
  const auto first = take(100, 110);
  const auto second = take(110, 120);
  tick();
  EXPECT_EQ(mark(), "100");
  set_.complete(second);
  tick();
  EXPECT_EQ(mark(), "100");
  set_.complete(first);
  tick();
  EXPECT_EQ(mark(), "120");
}

TEST_F(PartitionSetTest, ALetterUnderWayHoldsTheMarkAndTheCommitButNotTheReading) {
  set_mark(100);
  assign();
  const auto range = take(100, 110);
  const std::uint64_t generation = set_.open_letter(0, 104);
  set_.complete(range);
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
  set_.complete(take(100, 110));
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
  set_.complete(take(100, 110));
  tick();
  const auto before = take(110, 120);
  set_mark(50);  // an old snapshot came back
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 50}}));
  EXPECT_FALSE(set_.take(0, 120)) << "nothing is read before the consumer was moved";
  set_.placed(0);
  set_.complete(before);
  EXPECT_EQ(set_.low_water(0), 50);
  set_.complete(take(50, 60));
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
  set_.complete(take(100, 150));  // acknowledged, not marked yet
  ++epoch_;
  settle();
  EXPECT_EQ(mark(), "100");
  EXPECT_EQ(to_place(), (Places{{0, 100}}));
}

TEST_F(PartitionSetTest, AReconnectionWithEverythingMarkedMovesNothing) {
  set_mark(100);
  assign();
  set_.complete(take(100, 150));
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
  set_.complete(take(100, 150));
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
  set_.complete(take(100, 150));
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

TEST_F(PartitionSetTest, AMarkThatIsNoNumberCountsAsMissing) {
  store_.records()[key(0)].bytes = "rubbish";
  EXPECT_EQ(assign(), 10);
  set_.complete(take(10, 20));
  tick();
  tick();
  EXPECT_EQ(mark(), "20");
}

TEST_F(PartitionSetTest, ALogMadeAnewIsFollowedAndTheMarkFalls) {
  set_mark(100);
  log_.commits[0] = 100;
  assign();
  tick();
  set_.complete(take(0, 5));
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
  set_.complete(before);
  EXPECT_EQ(set_.low_water(0), 100);
}

TEST_F(PartitionSetTest, LagIsWhatIsNotDoneYetOfEachPartitionWhoseEndIsKnown) {
  for (const std::int32_t partition : {0, 1, 2}) set_mark(100, partition);
  std::vector<PartitionOffset> all{
      {0, PartitionOffset::kNone}, {1, PartitionOffset::kNone}, {2, PartitionOffset::kNone}};
  set_.assign(all);
  confirm();
  log_.ends = {{0, 130}, {1, 90}, {7, 1000}};  // of 1 it was heard of long ago
  const auto some = take(100, 110);
  set_.report_lag();
  EXPECT_EQ(metrics_.partition_lag_messages.values(), (PartitionGauge::Values{{0, 30}, {1, 0}}));
  EXPECT_EQ(metrics_.lag_messages.value(), 30);
  set_.complete(some);
  log_.ends[2] = 101;
  set_.report_lag();
  EXPECT_EQ(metrics_.partition_lag_messages.values(),
            (PartitionGauge::Values{{0, 20}, {1, 0}, {2, 1}}));
  EXPECT_EQ(metrics_.lag_messages.value(), 21);
}

TEST_F(PartitionSetTest, LagOfARevokedPartitionIsGoneAtOnce) {
  for (const std::int32_t partition : {0, 1}) set_mark(100, partition);
  std::vector<PartitionOffset> both{{0, PartitionOffset::kNone}, {1, PartitionOffset::kNone}};
  set_.assign(both);
  log_.ends = {{0, 130}, {1, 105}};
  set_.report_lag();
  set_.revoke(std::span(both).first(1));
  EXPECT_EQ(metrics_.partition_lag_messages.values(), (PartitionGauge::Values{{1, 5}}));
  EXPECT_EQ(metrics_.lag_messages.value(), 5);
  set_.revoke(both);
  EXPECT_EQ(metrics_.partition_lag_messages.values(), PartitionGauge::Values{});
  EXPECT_EQ(metrics_.lag_messages.value(), 0);
}

TEST_F(PartitionSetTest, LagIsUnknownWhereReadingHasNotBegun) {
  log_.silent = true;
  log_.ends[0] = 130;
  assign();
  set_.report_lag();
  EXPECT_EQ(metrics_.partition_lag_messages.values(), PartitionGauge::Values{});
}

TEST_F(PartitionSetTest, AfterAPauseReadingGoesOnBehindWhatWasTaken) {
  set_mark(100);
  assign();
  take(100, 110);
  set_.place_again();
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
  set_.place_again();
  set_.placed(0);
  EXPECT_TRUE(set_.take(0, 500));
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  EXPECT_TRUE(set_.take(0, 502)) << "within a stretch, offsets may be left out";
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
}

}  // namespace
}  // namespace fcap::updater
