// Partitions whose logs turn out to be others than the ones that were read.
#include "tests/unit/updater/support/fake_looks.h"
#include "tests/unit/updater/support/partition_set_fixture.h"

namespace fcap::updater {
namespace partition_logs_test {

using testing::FakeLooks;

class PartitionLogs : public testing::PartitionSetFixture {
 protected:
  PartitionLogs() { set_.set_log_looks(&looks_); }

  // A mark of the log as it is now.
  void set_known_mark(std::int64_t position, std::optional<std::int64_t> checked = {}) {
    MarkValue mark{.position = position, .log = {.cluster = looks_.cluster}};
    mark.log.last = looks_.point(position - 1);
    if (checked) mark.log.checked = looks_.point(*checked);
    store_.records()[key(0)].bytes = encode_mark(mark);
    log_.commits[0] = position;
  }
  // One that does not say which messages it has seen.
  void set_nameless_mark(std::int64_t position) {
    store_.records()[key(0)].bytes =
        encode_mark({.position = position, .log = {.cluster = looks_.cluster}});
    log_.commits[0] = position;
  }
  std::optional<MarkValue> mark_value() { return decode_mark(store_.records()[key(0)].bytes); }

  // Assigns partition 0 and lets things settle; where reading begins, told at once or, where the
  // look at the log came late, by moving the consumer.
  Places begin() {
    const std::int64_t offset = assign_only();
    settle();
    const Places moved = to_place();
    if (!moved.empty() || offset == PartitionOffset::kNone) return moved;
    return {{0, offset}};
  }
  void read(std::int64_t first, std::int64_t end) {
    for (std::int64_t offset = first; offset < end; ++offset) {
      const std::string payload = looks_.payload(offset);
      EXPECT_TRUE(set_.take(0, Delivered{offset, 1000 + offset, {}, payload}));
      if (offset + 1 < end) continue;
      std::vector<Batch::BatchOffsets> ranges;
      set_.seal(ranges);
      for (const Batch::BatchOffsets& range : ranges) testing::complete(set_, range);
    }
    settle();
  }
  // The next look is made, answered and acted upon.
  void look() {
    tick(std::chrono::minutes{2});
    settle();
  }
  [[nodiscard]] bool was_said(std::string_view text) const {
    return std::ranges::any_of(
        said_, [&](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  FakeLooks looks_;
};

TEST_F(PartitionLogs, AMarkNamesTheLastMessageBelowItAndWhatWasFoundAgain) {
  set_known_mark(100);
  EXPECT_EQ(begin(), (Places{{0, 100}}));
  set_.placed(0);
  read(100, 110);
  EXPECT_EQ(mark_value()->position, 110);
  EXPECT_EQ(mark_value()->log.cluster, "one");
  EXPECT_EQ(mark_value()->log.last, looks_.point(109));
  EXPECT_EQ(mark_value()->log.checked, looks_.point(99));
  look();
  read(110, 120);
  EXPECT_EQ(mark_value()->log.checked, looks_.point(109)) << "found again by the look";
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
}

TEST_F(PartitionLogs, AMarkBeyondTheLogsEndIsNotOfThisLogWhateverElseItKnows) {
  store_.records()[key(0)].bytes = encode_mark({.position = 276, .gaps = {{5, 276}}});
  log_.commits[0] = 276;
  looks_.high = 43;
  EXPECT_EQ(begin(), (Places{{0, 10}}));
  EXPECT_TRUE(was_said("it ends at offset 43; the log read before reached 276"));
  EXPECT_EQ(set_.recovery().offsets_missing(), 0);
}

TEST_F(PartitionLogs, ANewPartitionsMarkKnowsItsClusterAndLogSoon) {
  EXPECT_EQ(begin(), (Places{{0, 10}}));
  read(10, 20);
  EXPECT_EQ(mark_value()->log.cluster, "one");
  EXPECT_EQ(mark_value()->log.last, looks_.point(19));
  EXPECT_EQ(metrics_.log_unverified.value(), 0U);
}

TEST_F(PartitionLogs, ARecreationAndACrashBeforeTheFirstLookHideNothing) {
  EXPECT_EQ(begin(), (Places{{0, 10}}));
  read(10, 20);
  looks_.name = "new";
  read(20, 40);
  EXPECT_EQ(mark_value()->log.checked, (LogPoint{19, 1019, hash_message("", "old19")}));
  set_.revoke(std::vector<PartitionOffset>{{0, PartitionOffset::kNone}});
  log_.commits[0] = 40;
  EXPECT_EQ(begin(), (Places{{0, 10}}));
}

TEST_F(PartitionLogs, ALongerLogUnderTheSameNameIsReadFromItsBeginning) {
  set_known_mark(100);
  looks_.name = "new";
  EXPECT_EQ(begin(), (Places{{0, 10}}));
  EXPECT_EQ(mark(), "10") << "the mark falls before anything is read";
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  EXPECT_TRUE(was_said("holds another message"));
}

TEST_F(PartitionLogs, AShorterLogIsReadFromItsBeginning) {
  set_known_mark(100);
  looks_.high = 60;
  EXPECT_EQ(begin(), (Places{{0, 10}}));
  EXPECT_TRUE(was_said("ends at offset 60"));
}

// A snapshot may have brought it back, of a former log that was as long.
TEST_F(PartitionLogs, AMarkThatNamesNoMessageOfALogThatHasOlderOnesIsNotBelieved) {
  set_nameless_mark(100);
  looks_.low = 10;
  EXPECT_EQ(begin(), (Places{{0, 10}}));
  EXPECT_EQ(mark(), "10");
  EXPECT_TRUE(was_said("it names no message, and the log has some from 10 on"));
  EXPECT_EQ(metrics_.offset_resets.value(), 0U) << "it may be the same log";
}

TEST_F(PartitionLogs, AMarkThatNamesNoMessageIsBelievedWhereNoneIsOlder) {
  set_nameless_mark(100);
  looks_.low = 100;
  EXPECT_EQ(begin(), (Places{{0, 100}}));
  EXPECT_EQ(mark(), "100");
}

TEST_F(PartitionLogs, AMarkThatNamesNoMessageIsNotBelievedUnderARunningUpdaterEither) {
  set_known_mark(100);
  EXPECT_EQ(begin(), (Places{{0, 100}}));
  set_.placed(0);
  read(100, 110);
  set_nameless_mark(90);  // Redis was restored
  tick(std::chrono::minutes{1});
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 10}}));
  EXPECT_EQ(mark(), "10");
}

TEST_F(PartitionLogs, AMarkWhoseMessageIsGoneGoesOnNamingIt) {
  set_known_mark(100);
  looks_.compacted = true;
  for (int start = 0; start < 2; ++start) {
    EXPECT_EQ(begin(), (Places{{0, 100}})) << start;
    EXPECT_EQ(mark_value()->log.last, looks_.point(99));
    set_.revoke(std::vector<PartitionOffset>{{0, PartitionOffset::kNone}});
  }
  EXPECT_EQ(metrics_.log_unverified.value(), 2U);
}

TEST_F(PartitionLogs, AnotherClustersLogIsReadFromItsBeginning) {
  set_known_mark(100);
  looks_.cluster = "two";
  EXPECT_EQ(begin(), (Places{{0, 10}}));
  EXPECT_TRUE(was_said("cluster two"));
}

TEST_F(PartitionLogs, WhereTheMessageIsGoneTheLogIsTakenForTheSameAndThatIsSaidOnce) {
  set_known_mark(100);
  looks_.low = 100;
  EXPECT_EQ(begin(), (Places{{0, 100}}));
  look();
  EXPECT_EQ(metrics_.log_unverified.value(), 1U);
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
  EXPECT_TRUE(was_said("unverified"));
}

TEST_F(PartitionLogs, WhereTheMessageIsGoneAndNothingWasCommittedEverythingIsReadAgain) {
  set_known_mark(100);
  log_.commits.clear();
  looks_.compacted = true;
  EXPECT_EQ(begin(), (Places{{0, 10}}));
}

TEST_F(PartitionLogs, ALogThatIsKnownAgainNeedsNoCommittedOffset) {
  set_known_mark(100);
  log_.commits.clear();
  EXPECT_EQ(begin(), (Places{{0, 100}}));
}

TEST_F(PartitionLogs, NothingIsReadBeforeTheLogWasLookedAt) {
  set_known_mark(100);
  looks_.unanswered = true;
  EXPECT_EQ(begin(), Places{});
  EXPECT_TRUE(set_.checking());
  EXPECT_FALSE(set_.take(0, 100));
  EXPECT_TRUE(set_.failing()) << "the question is under way, but not answered for seconds";
  ++epoch_;  // and is asked again with the mark of the server that there is now
  looks_.unanswered = false;
  looks_.silent = {0};
  settle();
  set_.revoke(std::vector<PartitionOffset>{{0, PartitionOffset::kNone}});
  assign_only();
  settle();
  EXPECT_TRUE(set_.failing());
  EXPECT_NE(set_.trouble().find("no leader"), std::string::npos) << set_.trouble();
  looks_.silent.clear();
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 100}}));
}

TEST_F(PartitionLogs, ATopicRecreatedUnderAReaderIsNoticedAlthoughReadingGoesOn) {
  set_known_mark(100);
  begin();
  set_.placed(0);
  read(100, 150);
  looks_.name = "new";  // longer than what was read
  read(150, 200);
  EXPECT_EQ(mark_value()->log.last, looks_.point(199));
  look();
  EXPECT_EQ(mark(), "10");
  EXPECT_EQ(to_place(), (Places{{0, 10}}));
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  EXPECT_TRUE(was_said("no longer the log"));
  set_.placed(0);
  read(10, 30);
  look();
  EXPECT_EQ(metrics_.offset_resets.value(), 1U) << "the new log is known now";
}

TEST_F(PartitionLogs, ACrashAfterATopicWasRecreatedUnderAReaderHidesNothing) {
  set_known_mark(100);
  begin();
  set_.placed(0);
  look();
  looks_.name = "new";
  read(100, 150);  // and the mark says so
  set_.revoke(std::vector<PartitionOffset>{{0, PartitionOffset::kNone}});
  EXPECT_EQ(begin(), (Places{{0, 10}})) << "what was found again last is another message now";
}

// It was idle until the message that its mark names had expired.
TEST_F(PartitionLogs, ATopicRecreatedAfterItsMessagesHadExpiredIsNoticed) {
  set_known_mark(100);
  begin();
  set_.placed(0);
  looks_.low = 100;
  look();
  looks_.name = "new";
  looks_.low = 0;
  read(100, 150);
  look();
  EXPECT_EQ(mark(), "10");
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
}

TEST_F(PartitionLogs, OfAMarksMessagesTheOneThatWasFoundIsNamedOn) {
  set_known_mark(100, 50);
  looks_.gone = {99};
  begin();
  set_.placed(0);
  read(100, 110);
  EXPECT_EQ(mark_value()->log.checked, looks_.point(50));
}

TEST_F(PartitionLogs, OfARestoredMarksMessagesTheOneThatWasFoundIsNamedOn) {
  set_known_mark(100);
  begin();
  set_.placed(0);
  read(100, 150);
  set_known_mark(40, 20);
  looks_.gone = {39};
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 40}}));
  set_.placed(0);
  read(40, 50);
  EXPECT_EQ(mark_value()->log.checked, looks_.point(20));
}

TEST_F(PartitionLogs, AfterTroubleWithABrokerTheNewestMessageFromBeforeIsLookedFor) {
  set_known_mark(100);
  begin();
  set_.placed(0);
  read(100, 150);
  set_.suspect_logs();
  looks_.name = "new";
  read(150, 160);
  EXPECT_EQ(metrics_.offset_resets.value(), 1U) << "without waiting for the minute";
}

// An old snapshot came back, with a mark of the log that there was then.
TEST_F(PartitionLogs, ARestoredMarkOfAnotherLogCountsAsMissing) {
  for (const std::int64_t position : {40, 90}) {
    looks_.name = "old";
    set_known_mark(position);
    const auto old_mark = store_.records()[key(0)];
    looks_.name = "new";
    EXPECT_EQ(begin(), (Places{{0, 10}}));
    set_.placed(0);
    read(10, 60);
    EXPECT_EQ(mark(), "60");
    store_.records()[key(0)] = old_mark;
    settle();
    settle();
    EXPECT_EQ(to_place(), (Places{{0, 10}})) << position;
    EXPECT_EQ(mark(), "10");
    set_.revoke(std::vector<PartitionOffset>{{0, PartitionOffset::kNone}});
  }
}

TEST_F(PartitionLogs, ARestoredMarkOfThisLogIsGoneBackTo) {
  set_known_mark(100);
  begin();
  set_.placed(0);
  read(100, 150);
  set_known_mark(40);
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 40}}));
}

// It is stopping. A snapshot may have brought the mark back.
TEST_F(PartitionLogs, WhileNobodyCanLookAtTheLogNoForeignMarkIsBelieved) {
  set_known_mark(100);
  begin();
  set_.placed(0);
  read(100, 150);
  set_.set_log_looks(nullptr);
  looks_.name = "former";
  set_known_mark(140);
  const std::string restored = store_.records()[key(0)].bytes;
  ++epoch_;
  settle();
  EXPECT_EQ(store_.records()[key(0)].bytes, restored);
  EXPECT_TRUE(set_.recovery().settled()) << "the end waits for none that cannot be written";
}

TEST_F(PartitionLogs, ALookThatFailedIsMadeAgain) {
  set_known_mark(100);
  begin();
  set_.placed(0);
  looks_.silent = {0};
  looks_.name = "new";
  look();
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
  EXPECT_FALSE(set_.failing()) << "reading goes on";
  looks_.silent.clear();
  tick(std::chrono::seconds{2});
  settle();
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
}

TEST_F(PartitionLogs, ARewindKeepsWhatTheLogIsKnownBy) {
  set_known_mark(100);
  begin();
  set_.placed(0);
  read(100, 150);
  store_.records().clear();  // Redis was emptied
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 10}}));
  set_.placed(0);
  read(10, 40);
  EXPECT_EQ(mark_value()->log.last, looks_.point(39));
  look();
  EXPECT_EQ(metrics_.offset_resets.value(), 0U);
  looks_.name = "new";
  look();
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
}

TEST(LogVerdict, ALogThatEndsBeforeAMessageReadOnceIsAnother) {
  // Reading went back to 30, and meanwhile the topic was recreated.
  const KnownLog known{.cluster = "one", .points = {{90, 1, 7}}, .position = 30};
  LogLook look{.cluster = "one", .low = 0, .high = 50};
  look.found.emplace_back();
  EXPECT_EQ(judge_log(known, look).is, LogVerdict::LogMatch::kAnother);
  look.high = 91;
  EXPECT_EQ(judge_log(known, look).is, LogVerdict::LogMatch::kUnknown);
}

TEST(LogVerdict, ThatItIsTheSameLogIsShownByTheMessagesThatWereFoundAgain) {
  const LogPoint first{50, 1, 7};
  const LogPoint last{90, 2, 8};
  const KnownLog known{.cluster = "one", .points = {first, last}, .position = 100};
  LogLook look{.cluster = "one", .low = 0, .high = 100, .found = {first, std::nullopt}};
  EXPECT_EQ(judge_log(known, look).shown_by, std::vector{first});
  look.found[1] = LogPoint{90, 2, 9};
  EXPECT_EQ(judge_log(known, look).is, LogVerdict::LogMatch::kAnother);
  EXPECT_EQ(judge_log(known, look).shown_by, known.points);
  look.found = {std::nullopt, std::nullopt};
  EXPECT_EQ(judge_log(known, look).is, LogVerdict::LogMatch::kUnknown);
  EXPECT_TRUE(judge_log(known, look).shown_by.empty());
}

}  // namespace partition_logs_test
}  // namespace fcap::updater
