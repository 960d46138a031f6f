// SEMANTICS of reservations, one call at a time, on a store in memory.
#include <cerrno>
#include <string>

#include <gtest/gtest.h>
#include <pthread.h>

#include "reserve_fixture.h"

namespace fcap::checker_test {
namespace reserve_test {

TEST_F(Reserve, TakesThePlaceAndSaysForHowLong) {
  const HardResult first = reserve("a");
  EXPECT_TRUE(first.allowed);
  EXPECT_FALSE(first.unknown);
  EXPECT_EQ(first.reason, Reason::kDone);
  EXPECT_EQ(first.time, now_);
  EXPECT_EQ(first.expires, now_ + 15min);
  ASSERT_EQ(ledger().reservations().size(), 1U);
  EXPECT_EQ(ledger().size(), 0U);

  const HardResult second = reserve("b");
  EXPECT_FALSE(second.allowed);
  EXPECT_EQ(second.reason, Reason::kCapped);
  EXPECT_EQ(second.verdict.rule_id, "c1-daily");
  EXPECT_EQ(second.verdict.limit, 1U);
}

TEST_F(Reserve, ARefusalLeavesNoTrace) {
  reserve("a");
  const std::string before = store_->record("u");
  EXPECT_FALSE(reserve("b").allowed);
  EXPECT_EQ(store_->record("u"), before);
}

TEST_F(Reserve, CountsUntilItExpires) {
  reserve("a");
  now_ += 15min - 1ms;
  EXPECT_FALSE(reserve("b").allowed);
  now_ += 1ms;
  EXPECT_TRUE(reserve("b").allowed);
}

TEST_F(Reserve, LastsAsLongAsTheCallerSaysButNoLongerThanTheUpdaterAllows) {
  limit("c1", 10);
  EXPECT_EQ(reserve("a", "c1", {.life = 30s}).expires, now_ + 30s);
  EXPECT_EQ(reserve("b", "c1", {.life = 24h}).expires, now_ + 15min);
  EXPECT_EQ(reserve("c", "c1", {.life = 0s}).reason, Reason::kInvalid);
}

TEST_F(Reserve, ARepetitionGivesTheFirstAnswerAndTheFirstExpiry) {
  const HardResult first = reserve("a");
  const std::string before = store_->record("u");
  now_ += 1min;
  const HardResult again = reserve("a");
  EXPECT_TRUE(again.allowed);
  EXPECT_EQ(again.reason, Reason::kRepeated);
  EXPECT_EQ(again.time, first.time);
  EXPECT_EQ(again.expires, first.expires);
  EXPECT_EQ(store_->record("u"), before);
}

TEST_F(Reserve, AnExpiredOneIsDecidedAnew) {
  reserve("a");
  now_ += 16min;
  const HardResult again = reserve("a");
  EXPECT_TRUE(again.allowed);
  EXPECT_EQ(again.reason, Reason::kDone);
  EXPECT_EQ(again.expires, now_ + 15min);
}

TEST_F(Reserve, AnEventOfThisIdIsAllowedAndNothingIsWritten) {
  confirm("a", now_ - 1min);
  const std::string before = store_->record("u");
  const HardResult result = reserve("a");
  EXPECT_TRUE(result.allowed);
  EXPECT_EQ(result.reason, Reason::kRepeated);
  EXPECT_EQ(result.time, now_ - 1min);
  EXPECT_EQ(result.expires, std::nullopt);
  EXPECT_EQ(store_->record("u"), before);
}

TEST_F(Reserve, TheLaterEventIsNotCountedBesideItsReservation) {
  limit("c1", 2);
  const HardResult first = reserve("a");
  confirm("a", first.time);
  EXPECT_TRUE(reserve("b").allowed);
  EXPECT_FALSE(reserve("c").allowed);
}

TEST_F(Reserve, AReleasedPlaceIsFreeAndItsIdIsRefused) {
  reserve("a");
  EXPECT_TRUE(release("a").allowed);
  const HardResult again = reserve("a");
  EXPECT_FALSE(again.allowed);
  EXPECT_EQ(again.reason, Reason::kReleased);
  EXPECT_FALSE(record("a").allowed);
  EXPECT_TRUE(reserve("b").allowed);
}

TEST_F(Reserve, AReleaseNeedsNoReadAndMayComeFirst) {
  EXPECT_TRUE(release("a").allowed);
  EXPECT_EQ(store_->reads, 0);
  EXPECT_EQ(reserve("a").reason, Reason::kReleased);
}

TEST_F(Reserve, AReleaseThatArrivesBeforeItsReservationStillWins) {
  release("a");
  add_reservation("a", now_, 15min);
  EXPECT_TRUE(reserve("b").allowed);
}

TEST_F(Reserve, AnEventAfterAReleaseCounts) {
  const HardResult first = reserve("a");
  release("a");
  confirm("a", first.time);
  EXPECT_FALSE(reserve("b").allowed);
  EXPECT_EQ(reserve("a").reason, Reason::kRepeated);
}

TEST_F(Reserve, AnErasedReservationDoesNotCount) {
  reserve("a");
  std::string bytes;
  ledger::append_erased_before(now_, bytes);
  store_->add("u", bytes);
  now_ += 1ms;
  EXPECT_TRUE(reserve("b").allowed);
}

TEST_F(Reserve, OneMoreThanFiveMinutesAheadDoesNotCount) {
  add_reservation("a", now_ + 5min + 1ms, 15min);
  EXPECT_TRUE(reserve("b").allowed);
  limit("c1", 2);
  add_reservation("c", now_ + 5min, 15min);
  EXPECT_FALSE(reserve("d").allowed);
}

TEST_F(Reserve, PlainChecksCountReservations) {
  const Candidate candidates[] = {{"c1"}};
  EXPECT_TRUE(checker_->check("u", candidates).verdicts[0].allowed);
  reserve("a");
  EXPECT_FALSE(checker_->check("u", candidates).verdicts[0].allowed);
}

TEST_F(Reserve, ARecordedEventIsInTheLedgerAtOnce) {
  const HardResult first = record("a");
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(first.reason, Reason::kDone);
  EXPECT_EQ(first.expires, std::nullopt);
  EXPECT_EQ(ledger().size(), 1U);
  EXPECT_EQ(ledger().reservations().size(), 0U);
  EXPECT_EQ(record("a").reason, Reason::kRepeated);
  EXPECT_EQ(record("b").reason, Reason::kCapped);
}

TEST_F(Reserve, RecordTurnsAReservationIntoItsEvent) {
  const HardResult reserved = reserve("a");
  now_ += 10min;
  const HardResult recorded = record("a");
  EXPECT_TRUE(recorded.allowed);
  EXPECT_EQ(recorded.time, reserved.time);
  EXPECT_EQ(recorded.expires, std::nullopt);
  ASSERT_EQ(ledger().size(), 1U);
  EXPECT_EQ(ledger().times().front(), reserved.time);
  now_ += 10min;
  EXPECT_FALSE(reserve("b").allowed);
}

TEST_F(Reserve, WhatWasShownIsRecordedAboveTheLimit) {
  reserve("a");
  const HardResult shown = checker_->hard({HardCall::kRecord, {"u", {"c1"}, "b"}}, {.shown = true});
  EXPECT_TRUE(shown.allowed);
  EXPECT_EQ(shown.reason, Reason::kDone);
  EXPECT_EQ(shown.expires, std::nullopt);
  EXPECT_EQ(ledger().size(), 1U);
  EXPECT_EQ(checker_->hard({HardCall::kRecord, {"u", {"c1"}, "b"}}, {.shown = true}).reason,
            Reason::kRepeated);
  EXPECT_EQ(reserve("c").verdict.count, 2U);
}

TEST_F(Reserve, WhatWasShownIsRecordedAfterItsRelease) {
  reserve("a");
  release("a");
  now_ += 1min;
  const HardResult shown = checker_->hard({HardCall::kRecord, {"u", {"c1"}, "a"}}, {.shown = true});
  EXPECT_EQ(shown.reason, Reason::kDone);
  EXPECT_EQ(shown.time, now_);
  EXPECT_EQ(reserve("b").reason, Reason::kCapped);
}

TEST_F(Reserve, WhatWasShownIsRecordedWhereARuleReachesIntoAGap) {
  store_->missing = now_;
  EXPECT_EQ(record("a").reason, Reason::kIncomplete);
  EXPECT_EQ(checker_->hard({HardCall::kRecord, {"u", {"c1"}, "a"}}, {.shown = true}).reason,
            Reason::kDone);
}

// The rules are not asked, so none are needed.
TEST_F(Reserve, WhatWasShownIsRecordedBeforeThereAreRules) {
  checker_->set_rules(nullptr);
  EXPECT_EQ(record("a").reason, Reason::kNoRules);
  const HardRequest shown(HardCall::kRecord, {"u", {"c1"}, "a"});
  EXPECT_EQ(checker_->hard(shown, {.shown = true}).reason, Reason::kDone);
  EXPECT_EQ(ledger().size(), 1U);
  EXPECT_EQ(checker_->hard(shown, {.shown = true}).reason, Reason::kRepeated);
  EXPECT_EQ(
      checker_->hard({HardCall::kRecord, {"u", {"c1", "other"}, "a"}}, {.shown = true}).reason,
      Reason::kInvalid);
  EXPECT_EQ(checker_->hard({HardCall::kRecord, {"u", {""}, "b"}}, {.shown = true}).reason,
            Reason::kInvalid);
}

TEST_F(Reserve, AReservationIsNotWhatWasShown) {
  reserve("a");
  EXPECT_EQ(reserve("b", "c1", {.shown = true}).reason, Reason::kCapped);
}

TEST_F(Reserve, WhatThisProcessHasShownCounts) {
  checker_->note_shown({"u", {"c1"}, "a"});
  EXPECT_EQ(reserve("b").reason, Reason::kCapped);
  // But not against itself.
  EXPECT_EQ(reserve("a").reason, Reason::kDone);
}

TEST_F(Reserve, EveryRuleOfTheCandidateMustAllow) {
  Rule user = sliding_rule("user-daily", "", 2);
  user.scope = Scope::kUser;
  checker_->set_rules(rule_set({sliding_rule("c1-daily", "c1", 5), user}));
  EXPECT_TRUE(reserve("a").allowed);
  EXPECT_TRUE(reserve("b", "c2").allowed);
  const HardResult third = reserve("c", "c3");
  EXPECT_FALSE(third.allowed);
  EXPECT_EQ(third.verdict.rule_id, "user-daily");
}

// --- What it starts from, and races.

TEST_F(Reserve, AfterACheckItTakesOneExchange) {
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  ASSERT_TRUE(check.verdicts[0].allowed);
  EXPECT_TRUE(reserve("a", "c1", {}, check.token).allowed);
  EXPECT_EQ(store_->reads, 0);
  EXPECT_EQ(store_->exchanges, 1);
}

TEST_F(Reserve, ACheckThatWasOvertakenCostsOneReadMore) {
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  reserve("a");
  store_->reads = store_->exchanges = 0;
  EXPECT_EQ(reserve("b", "c1", {}, check.token).reason, Reason::kCapped);
  EXPECT_EQ(store_->exchanges, 1);
  EXPECT_EQ(store_->reads, 1);
}

TEST_F(Reserve, ARefusalNeverRestsOnAnOldRecord) {
  reserve("a");
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  release("a");
  EXPECT_TRUE(reserve("b", "c1", {}, check.token).allowed);
}

TEST_F(Reserve, ARepetitionNeverRestsOnAnOldRecord) {
  reserve("a");
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  release("a");
  EXPECT_EQ(reserve("a", "c1", {}, check.token).reason, Reason::kReleased);
}

TEST_F(Reserve, ACheckOfAnotherUserIsNotUsed) {
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("v", candidates, {.keep_record = true});
  EXPECT_TRUE(reserve("a", "c1", {}, check.token).allowed);
  EXPECT_EQ(store_->reads, 1);
}

TEST_F(Reserve, WhoeverIsSecondReadsAgainAndIsRefused) {
  store_->before_exchange = [this] { add_reservation("other", now_, 15min); };
  EXPECT_EQ(reserve("a").reason, Reason::kCapped);
  EXPECT_EQ(store_->reads, 2);
  EXPECT_EQ(checker_->stats().hard.conflicts, 1U);
}

TEST_F(Reserve, EvenAnAppendIsAConflict) {
  limit("c1", 5);
  store_->before_exchange = [this] { confirm("other", now_); };
  EXPECT_TRUE(reserve("a").allowed);
  EXPECT_EQ(store_->exchanges, 2);
  EXPECT_EQ(ledger().size(), 1U);
  EXPECT_EQ(ledger().reservations().size(), 1U);
}

// A read may be sent and waited for on the caller's own thread.
TEST_F(Reserve, TheCallersThreadStaysAsItWas) {
  const auto disturb = [] {
    errno = EAGAIN;
    int state = PTHREAD_CANCEL_ENABLE;
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    EXPECT_EQ(state, PTHREAD_CANCEL_DISABLE) << "canceling would end the process";
    ::pthread_setcancelstate(state, nullptr);
  };
  store_->on_read = disturb;
  store_->on_append = disturb;
  errno = ENOENT;
  EXPECT_TRUE(reserve("a").allowed);
  EXPECT_EQ(errno, ENOENT);
  limit("c2", 1);
  const Candidate ranked[] = {{"c2"}};
  const std::string_view ids[] = {"b"};
  errno = ENOENT;
  EXPECT_EQ(checker_->pick({Promise::kShared, "u", ranked, ids}).reason, Reason::kDone);
  EXPECT_EQ(store_->appends, 1);
  EXPECT_EQ(errno, ENOENT);
  int state = PTHREAD_CANCEL_DISABLE;
  ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
  EXPECT_EQ(state, PTHREAD_CANCEL_ENABLE);
}

TEST_F(Reserve, RetriesAreBounded) {
  limit("c1", 1000);
  int others = 0;
  std::function<void()> write = [&] {
    confirm("other" + std::to_string(++others), now_ - 48h);
    store_->before_exchange = write;
  };
  store_->before_exchange = write;
  const HardResult result = reserve("a");
  store_->before_exchange = nullptr;
  EXPECT_FALSE(result.allowed);
  EXPECT_FALSE(result.unknown);
  EXPECT_EQ(result.reason, Reason::kConflict);
  EXPECT_EQ(others, 32);
}

}  // namespace reserve_test
}  // namespace fcap::checker_test
