// Losses that become gaps, and how gaps are handed out and closed.
#include "tests/unit/updater/support/fake_looks.h"
#include "tests/unit/updater/support/news_of.h"
#include "tests/unit/updater/support/partition_set_fixture.h"

namespace fcap::updater {
namespace partition_gaps_test {

using std::chrono::milliseconds;

class PartitionGaps : public testing::PartitionSetFixture {
 protected:
  PartitionGaps() {
    MarkOptions with_gaps = options();
    with_gaps.gap_min = 20;
    with_gaps.piece_offsets_max = 30;
    partitions_ = std::make_unique<PartitionSet>(
        store_, [this] { return epoch_; }, log_, with_gaps, metrics_,
        [this](LogLevel, std::string_view text) { said_.emplace_back(text); });
    store_.epoch = [this] { return epoch_; };
  }
  ~PartitionGaps() override { store_.run_all(); }

  std::string mark_text() { return store_.records()[key(0)].bytes; }
  std::int64_t begin() {
    std::vector<PartitionOffset> at{{0, PartitionOffset::kNone}};
    partitions_->assign(at);
    turn();
    turn();
    return at[0].offset;
  }
  void turn() {
    now_ += milliseconds{1000};
    partitions_->tick(now_, instant_from_ms(1'700'000'000'000));
  }
  void turns() {
    for (int i = 0; i < 5; ++i) turn();
    place();
  }
  void place() {
    std::vector<PartitionOffset> places;
    partitions_->to_place(places);
    for (const PartitionOffset& at : places) {
      placed_at_ = at.offset;
      partitions_->placed(at.partition);
    }
  }
  void read(std::int64_t first, std::int64_t end) {
    for (std::int64_t offset = first; offset < end; ++offset) {
      ASSERT_TRUE(partitions_->take(0, offset));
    }
    std::vector<Batch::BatchOffsets> ranges;
    partitions_->seal(ranges);
    for (const Batch::BatchOffsets& range : ranges) testing::complete(*partitions_, range);
  }
  std::vector<GapPiece> pieces() {
    std::vector<GapPiece> all;
    partitions_->recovery().list_pieces(all);
    return all;
  }
  // Fills the newest piece, which must be this one.
  void fill(std::int64_t from, std::int64_t to) {
    ASSERT_EQ(pieces().size(), 1U);
    const GapPiece piece = pieces().front();
    EXPECT_EQ(piece.from, from);
    EXPECT_EQ(piece.to, to);
    EXPECT_TRUE(partitions_->recovery().piece_done(piece));
    turn();
    turn();
  }

  std::unique_ptr<PartitionSet> partitions_;
  std::int64_t placed_at_ = -1;
};

TEST_F(PartitionGaps, AnEmptiedServerHoldsUpNothingAndIsFilledTheNewestFirst) {
  set_mark(100);
  EXPECT_EQ(begin(), 100);
  read(100, 120);
  turns();
  store_.records().clear();
  turns();
  EXPECT_EQ(placed_at_, 120) << "reading goes on where it was";
  EXPECT_TRUE(mark_text().starts_with("4 120 ")) << "before anything is read: " << mark_text();
  EXPECT_TRUE(mark_text().ends_with(" gaps=10-120")) << mark_text();
  read(120, 125);
  fill(90, 120);
  EXPECT_TRUE(mark_text().ends_with(" gaps=10-90")) << mark_text();
  EXPECT_TRUE(mark_text().starts_with("4 125 ")) << mark_text();
  fill(60, 90);
  fill(30, 60);
  fill(10, 30);
  EXPECT_EQ(mark_text().find("gaps"), std::string::npos) << mark_text();
  EXPECT_TRUE(pieces().empty());
  EXPECT_EQ(partitions_->recovery().offsets_missing(), 0);
}

TEST_F(PartitionGaps, TheFirstMessageThatWasReadInAGapIdentifiesTheLog) {
  log_.commits[0] = 120;
  EXPECT_EQ(begin(), 120);
  turns();
  EXPECT_EQ(mark_text(), "4 120 gaps=10-120");
  const GapPiece newest = pieces().front();
  partitions_->piece_begun(newest, {.offset = 91, .timestamp_ms = 1, .payload = "a"});
  EXPECT_TRUE(partitions_->recovery().piece_done(newest));
  partitions_->piece_begun(pieces().front(), {.offset = 60, .timestamp_ms = 1});
  turns();
  const LogPoint first{91, 1, hash_message("", "a")};
  EXPECT_EQ(decode_mark(mark_text())->log.last, first) << mark_text();
  read(120, 125);
  turns();
  EXPECT_EQ(decode_mark(mark_text())->log.last->offset, 124) << mark_text();
  EXPECT_EQ(decode_mark(mark_text())->log.checked, first)
      << "what was delivered since may be of another log";
}

// Otherwise its gap would stay open until the log has become as long.
TEST_F(PartitionGaps, ALogThatEndsBeforeARestoredMarkIsAnother) {
  testing::FakeLooks looks;
  partitions_->set_log_looks(&looks);
  begin();
  turns();
  ASSERT_EQ(mark_text(), "4 10 cluster=one");
  const MarkValue restored{
      .position = 138, .log = {.cluster = "one", .last = looks.point(137)}, .gaps = {{10, 138}}};
  store_.records()[key(0)].bytes = encode_mark(restored);
  ++epoch_;
  turns();
  EXPECT_EQ(partitions_->recovery().offsets_missing(), 128);
  looks.high = 49;  // the topic is recreated
  now_ += std::chrono::minutes{2};
  turns();
  EXPECT_EQ(partitions_->recovery().offsets_missing(), 0);
  EXPECT_EQ(placed_at_, 10);
  EXPECT_EQ(mark_text(), "4 10 cluster=one");
  partitions_->set_log_looks(nullptr);
}

TEST_F(PartitionGaps, AMarkThatIsGoneIsSaidOnceAndNotWhereAGroupBegins) {
  begin();
  turns();
  EXPECT_EQ(testing::news_of(*partitions_).gone, SlotSet{});
  read(10, 20);
  turns();
  store_.records().clear();
  turns();
  EXPECT_EQ(testing::news_of(*partitions_).gone, SlotSet::all());
  turns();
  EXPECT_EQ(testing::news_of(*partitions_).gone, SlotSet{});
}

TEST_F(PartitionGaps, WithoutAMarkWhereTheGroupHasCommittedOneIsGone) {
  log_.commits[0] = 120;
  begin();
  turns();
  EXPECT_EQ(testing::news_of(*partitions_).gone, SlotSet::all());
}

TEST_F(PartitionGaps, WhereTheyEndIsSaidOfPartitionsWhoseMarkIsKnown) {
  const auto ends = [this] {
    std::vector<GapEnd> all;
    partitions_->recovery().list_gap_ends(all);
    return all;
  };
  set_mark(100);
  begin();
  turns();
  ASSERT_EQ(ends().size(), 1U);
  EXPECT_EQ(ends()[0].to, std::nullopt);
  read(100, 120);
  turns();
  store_.records().clear();
  turns();
  ASSERT_EQ(ends().size(), 1U);
  EXPECT_EQ(ends()[0].to, 120);
  fill(90, 120);
  EXPECT_EQ(ends()[0].to, 90);
  const auto compared = testing::news_of(*partitions_).compared;
  ASSERT_EQ(compared.size(), 1U);
  EXPECT_LT(compared.begin()->second, now_) << "since the write began, not since its answer";
  // Another server may lack what was filled on the former one.
  ++epoch_;
  EXPECT_TRUE(testing::news_of(*partitions_).compared.empty());
  EXPECT_TRUE(ends().empty());
  turns();
  EXPECT_EQ(ends().size(), 1U);
  const PartitionOffset own{0, PartitionOffset::kNone};
  partitions_->revoke({&own, 1});
  EXPECT_TRUE(ends().empty());
  // Taken over while the server does not answer: nothing is known of its gaps.
  store_.next_fault = [] { return testing::FaultStore::Fault::kLost; };
  std::vector<PartitionOffset> at{own};
  partitions_->assign(at);
  turn();
  EXPECT_TRUE(ends().empty());
}

TEST_F(PartitionGaps, ALittleIsReadInLine) {
  set_mark(100);
  begin();
  read(100, 110);
  set_mark(95);
  turns();
  EXPECT_EQ(placed_at_, 95);
  EXPECT_TRUE(pieces().empty());
}

TEST_F(PartitionGaps, ANewOwnerGoesOnWithTheGapsOfTheMark) {
  store_.records()[key(0)].bytes = "4 500 gaps=40-90,100-120";
  log_.commits[0] = 500;
  EXPECT_EQ(begin(), 500);
  EXPECT_EQ(partitions_->recovery().offsets_missing(), 70);
  fill(100, 120);
  EXPECT_EQ(mark_text(), "4 500 gaps=40-90");
}

TEST_F(PartitionGaps, WithoutAMarkReadingBeginsAtTheCommittedOffset) {
  log_.commits[0] = 500;
  EXPECT_EQ(begin(), 500);
  EXPECT_EQ(mark_text(), "4 500 gaps=10-500");
}

TEST_F(PartitionGaps, WithoutACommittedOffsetReadingBeginsAtTheStartOfRetention) {
  EXPECT_EQ(begin(), 10);
  EXPECT_TRUE(pieces().empty());
}

TEST_F(PartitionGaps, APieceAcrossAReconnectionCountsForNothing) {
  log_.commits[0] = 500;
  begin();
  const GapPiece piece = pieces().front();
  ++epoch_;
  EXPECT_FALSE(partitions_->recovery().filling(piece));
  EXPECT_FALSE(partitions_->recovery().piece_done(piece));
  turns();
  EXPECT_FALSE(partitions_->recovery().piece_done(piece)) << "whatever the new server holds";
  EXPECT_EQ(partitions_->recovery().offsets_missing(), 490);
}

TEST_F(PartitionGaps, APieceAcrossALossCountsForNothing) {
  log_.commits[0] = 500;
  begin();
  const GapPiece piece = pieces().front();
  store_.records().clear();
  turns();
  EXPECT_FALSE(partitions_->recovery().piece_done(piece));
  EXPECT_EQ(mark_text(), "4 500 gaps=10-500");
}

TEST_F(PartitionGaps, ASecondLossJoinsTheGapOfTheFirst) {
  log_.commits[0] = 500;
  begin();
  fill(470, 500);
  place();
  read(500, 600);
  turns();
  const std::string later = mark_text();
  EXPECT_TRUE(later.starts_with("4 600 ")) << later;
  store_.records()[key(0)].bytes = "4 500 gaps=10-500";  // an old snapshot came back
  turns();
  EXPECT_EQ(placed_at_, 600);
  EXPECT_TRUE(mark_text().ends_with(" gaps=10-600")) << mark_text();
}

TEST_F(PartitionGaps, AMarkNamesNoMoreGapsThanItCanHold) {
  const std::string former = "4 500 gaps=20-30,40-50,60-70,80-90,100-110,120-130,140-150,160-170";
  store_.records()[key(0)].bytes = former;
  log_.commits[0] = 500;
  begin();
  place();
  read(500, 600);
  turns();
  store_.records()[key(0)].bytes = former;  // an old snapshot came back
  turns();
  const auto mark = decode_mark(mark_text());
  ASSERT_TRUE(mark) << mark_text();
  EXPECT_EQ(mark->gaps.size(), MarkValue::kGapsMax);
  EXPECT_EQ(mark->gaps.front().from, 20);
  EXPECT_EQ(mark->gaps.back(), (Gap{500, 600}));
}

// Nobody can read again what Redis has lost of the offsets below the log's start.
class PartitionGapsOfAShortLog : public PartitionGaps {
 protected:
  PartitionGapsOfAShortLog() {
    log_.log_start = log_.start;
    log_.gone_before = kGone;
  }
  void expect_said_once() {
    const auto expired = partitions_->take_expired();
    ASSERT_EQ(expired.size(), 1U);
    EXPECT_EQ(expired[0].partition, 0);
    EXPECT_EQ(expired[0].newest, kGone);
    EXPECT_EQ(expired[0].slots, SlotSet::all());
    EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  }
  static constexpr Instant kGone = instant_from_ms(1'699'000'000'000);
};

TEST_F(PartitionGapsOfAShortLog, ALossBeforeTheStartIsSaid) {
  log_.commits[0] = 500;
  EXPECT_EQ(begin(), 500);
  turns();
  expect_said_once();
}

TEST_F(PartitionGapsOfAShortLog, ALossMeanwhileIsSaid) {
  EXPECT_EQ(begin(), 10);
  place();
  read(10, 100);
  turns();
  EXPECT_TRUE(partitions_->take_expired().empty());
  store_.records().clear();
  turns();
  expect_said_once();
}

TEST_F(PartitionGapsOfAShortLog, AFirstStartAndARestartHaveLostNothing) {
  EXPECT_EQ(begin(), 10);
  place();
  read(10, 100);
  turns();
  const PartitionOffset at{0};
  partitions_->revoke({&at, 1});
  log_.commits[0] = 100;
  EXPECT_EQ(begin(), 100);
  turns();
  EXPECT_TRUE(partitions_->take_expired().empty());
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
}

TEST_F(PartitionGapsOfAShortLog, HowLateTheyWereMayNotBeKnown) {
  log_.gone_before = Instant::max();
  log_.commits[0] = 500;
  begin();
  const auto expired = partitions_->take_expired();
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].newest, std::nullopt);
}

TEST_F(PartitionGaps, OffsetsThatExpiredBeforeTheyWereReadAreSaid) {
  set_mark(50);
  EXPECT_EQ(begin(), 50);
  place();
  log_.log_start = 80;
  ASSERT_TRUE(partitions_->take(0, Delivered{.offset = 80, .timestamp_ms = 1'699'000'000'000}));
  turns();
  const auto expired = partitions_->take_expired();
  ASSERT_EQ(expired.size(), 1U);
  EXPECT_EQ(expired[0].newest, instant_from_ms(1'699'000'000'000));
}

// A marker of a transaction, or a message that was compacted away, and Kafka cannot say yet which.
TEST_F(PartitionGaps, OffsetsWithoutAMessageHaveNotExpiredBecauseKafkaDoesNotAnswer) {
  set_mark(50);
  EXPECT_EQ(begin(), 50);
  place();
  log_.silent = true;
  ASSERT_TRUE(partitions_->take(0, Delivered{.offset = 51, .timestamp_ms = 1'699'000'000'000}));
  turns();
  EXPECT_TRUE(partitions_->take_expired().empty());
  log_.silent = false;
  now_ += std::chrono::seconds{2};
  turns();
  EXPECT_TRUE(partitions_->take_expired().empty());
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
}

TEST_F(PartitionGaps, WhatExpiresInAGapLeavesIt) {
  log_.commits[0] = 500;
  begin();
  const GapPiece newest = pieces().front();
  EXPECT_EQ(newest.from, 470);
  partitions_->recovery().expire(newest, 480, std::nullopt, {});
  EXPECT_EQ(partitions_->recovery().offsets_missing(), 20);
  EXPECT_TRUE(partitions_->recovery().piece_done(newest));
  turns();
  EXPECT_EQ(partitions_->recovery().offsets_missing(), 0);
  EXPECT_EQ(mark(), "500");
  EXPECT_EQ(partitions_->take_expired().size(), 1U);
  partitions_->recovery().expire(newest, 490, std::nullopt, {});
  EXPECT_TRUE(partitions_->take_expired().empty()) << "nothing is missing there";
}

TEST_F(PartitionGaps, WhatHadExpiredBeforeItWasGivenUpIsNotSaidOfALaterGap) {
  log_.commits[0] = 500;
  begin();
  turns();
  const GapPiece newest = pieces().front();
  partitions_->recovery().expire(newest, newest.from + 1, std::nullopt, {});
  (void)partitions_->take_expired();
  const PartitionOffset own{0, PartitionOffset::kNone};
  partitions_->revoke({&own, 1});
  store_.records().clear();
  begin();
  turns();
  while (!pieces().empty()) ASSERT_TRUE(partitions_->recovery().piece_done(pieces().front()));
  EXPECT_EQ(said_.back(), "partition 0: its gap is filled, nothing is missing");
}

TEST_F(PartitionGaps, AnotherLogHasNoGaps) {
  log_.commits[0] = 500;
  begin();
  turns();
  EXPECT_TRUE(partitions_->take(0, 5));  // the topic was recreated
  EXPECT_EQ(partitions_->recovery().offsets_missing(), 0);
}

}  // namespace partition_gaps_test
}  // namespace fcap::updater
