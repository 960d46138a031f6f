// Partitions in a cluster whose marks may be about other logs than the ones that are read.
#include <chrono>
#include <optional>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/shard_recovery_fixture.h"

namespace fcap::updater {
namespace shard_recovery_logs_test {

using std::chrono::milliseconds;
using testing::ScriptedCluster;

class ShardRecoveryLogs : public testing::ShardRecoveryFixture {
 protected:
  // The log goes on at 950 while a shard is away, which has another's mark of 300 when it is back.
  void go_on_below() {
    begin(1'000'000, 1'000'000);
    read(1'000'000, 1'000'010);
    wait_for_marks();
    cluster_.set_refusing(0, true);
    step_ = milliseconds{100};
    turn_until([this] { return metrics_.shards_away.value() == 1; });
    cluster_.empty(0);
    cluster_.put_others_mark(300, {.cluster = "one", .last = looks_.point(299)}, 50);
    read(950, 960);
    cluster_.set_refusing(0, false);
    turn_until([this] { return metrics_.shards_away.value() == 0 && !set_.checking(); });
  }
};

// The group's offset of the former log does not show that a mark is about the new one.
TEST_F(ShardRecoveryLogs, MarksThatNothingIdentifiesAreNotBelievedInALogWithoutCommits) {
  read_until_the_log_is_another();
  looks_.compacted = true;
  wait_until_read();
  EXPECT_EQ(metrics_.log_unverified.value(), 0U);
}

TEST_F(ShardRecoveryLogs, ALogThatGoesOnBelowThePositionIsDoubtedFromItsFirstMessageOn) {
  begin(1'000'000, 1'000'000);
  read(1'000'000, 1'000'010);
  wait_for_marks();
  read(5, 55);  // which is done before its marks are asked for
  wait_for_marks();
  EXPECT_EQ(set_.recovery().offsets_missing(), 0);
  set_.recovery().doubt_all();
  EXPECT_EQ(set_.recovery().offsets_missing(), 50);
}

TEST_F(ShardRecoveryLogs, MarksThatNothingIdentifiesAreNotBelievedInALogThatGoesOnBelow) {
  begin(1'000'000, 1'000'000);
  read(1'000'000, 1'000'010);
  wait_for_marks();
  looks_.compacted = true;
  read(5, 55);
  wait_for_marks();
  EXPECT_EQ(set_.recovery().offsets_missing(), 55);
}

// Below the first message taken, some may be missing that a mark names as missing, whatever that
// message is.
TEST_F(ShardRecoveryLogs, WhatAMarkDoesNotClaimIsMissingAlsoInALogThatGoesOnBelow) {
  go_on_below();
  EXPECT_EQ(set_.recovery().offsets_missing(), 660);
}

// Nobody can read it, and looking for it takes long.
TEST_F(ShardRecoveryLogs, WhatDoesNotExistAnyMoreIsNotMissingInALogThatGoesOnBelow) {
  looks_.low = 400;
  go_on_below();
  EXPECT_EQ(set_.recovery().offsets_missing(), 560);
}

// A snapshot may have brought it back, of a former log that was as long.
TEST_F(ShardRecoveryLogs, AMarkThatNamesNoMessageDoesNotCountWhereTheLogHasOlderOnes) {
  cluster_.put_others_mark(100, {.cluster = "one"}, 5);
  begin(100, 0);
  turn_until([this] { return lacking().has_value(); });
  EXPECT_EQ(lacking(), SlotSet::all());
  EXPECT_TRUE(was_said("it names no message"));
}

TEST_F(ShardRecoveryLogs, NothingFromBeforeTheRetentionIsMissing) {
  cluster_.put_others_mark(100, {.cluster = "one"}, 5);
  begin(100, 90);
  turn_until([this] { return lacking().has_value(); });
  EXPECT_EQ(set_.recovery().offsets_missing(), 10);
}

TEST_F(ShardRecoveryLogs, AMarkThatNamesNoMessageCountsInALogThatBeginsAtIt) {
  looks_.low = 100;
  cluster_.put_others_mark(100, {.cluster = "one"}, 5);
  begin(100, 0);
  turn_until([this] { return lacking().has_value(); });
  EXPECT_EQ(lacking(), ScriptedCluster::all_slots_of(1));
}

// The position stands still, but more is known of the log.
TEST_F(ShardRecoveryLogs, MarksNameAMessageThatWasFoundAlsoIfOneThatIsGoneWasKnownFirst) {
  looks_.low = 50;
  cluster_.put_others_mark(100, {.cluster = "one", .last = looks_.point(5)}, 5);
  begin(100, 100);
  cluster_.empty(0);
  cluster_.put_others_mark(90, {.cluster = "one", .last = looks_.point(89)}, 50);
  const auto names_it = [this](const MarkValue& mark) {
    return mark.position == 100 && mark.log.last == looks_.point(89);
  };
  turn_until([&] { return all_marks(names_it); });
}

// It is stopping. A snapshot may have brought the mark back, of a former log.
TEST_F(ShardRecoveryLogs, WhileNobodyCanLookAtTheLogNoForeignMarkIsBelieved) {
  begin(100, 100);
  wait_for_marks();
  set_.set_log_looks(nullptr);
  cluster_.empty(0);
  cluster_.put_others_mark(80, {.cluster = "one", .last = looks_.point(79)}, 50);
  const auto restored = cluster_.records(0);
  read(100, 110);
  const auto later = now_ + std::chrono::seconds{1};
  turn_until([&] { return now_ >= later; });
  EXPECT_EQ(cluster_.records(0), restored);
}

}  // namespace shard_recovery_logs_test
}  // namespace fcap::updater
