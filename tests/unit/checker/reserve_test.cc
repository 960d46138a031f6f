// SEMANTICS of reservations, one call at a time, on a store in memory.
#include <string>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "ledger/encode_runs.h"
#include "reserving_store.h"

namespace fcap::checker_test {
namespace {

// The memory store's records expire by the system clock, so tests judge by it.
Instant wall_now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

class Reserve : public ::testing::Test {
 protected:
  Reserve() { make({}); }

  void make(CheckerOptions options) {
    checker_.reset();
    options.store = store_;
    options.clock = [this] { return now_; };
    auto made = Checker::create(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    limit("c1", 1);
  }
  void limit(const std::string& campaign, std::uint32_t count) {
    checker_->set_rules(rule_set({sliding_rule(campaign + "-daily", campaign, count)}));
  }
  ReserveResult reserve(std::string_view id, std::string_view campaign = "c1",
                        ReserveOptions options = {}) {
    return checker_->reserve("u", {campaign}, id, options);
  }
  ReserveResult record(std::string_view id) { return checker_->record("u", {"c1"}, id); }
  ReserveResult release(std::string_view id) { return checker_->release("u", {"c1"}, id); }

  ledger::Ledger ledger() {
    ledger::Ledger ledger;
    EXPECT_EQ(ledger.decode(store_->record("u")), ledger::DecodeCode::kOk);
    return ledger;
  }
  ledger::Entry entry(std::string_view id, Instant time) const {
    return {.time = time,
            .campaign = ledger::id_hash("c1"),
            .creative = 0,
            .type = EventType::kImpression,
            .fingerprint = ledger::fingerprint(id)};
  }
  // What the updater appends.
  void confirm(std::string_view id, Instant time) {
    const ledger::Entry event = entry(id, time);
    std::string bytes;
    ledger::append_entries({&event, 1}, bytes);
    store_->add("u", bytes);
  }
  // What another ad server has reserved.
  void add_reservation(std::string_view id, Instant time, std::chrono::milliseconds life,
                       bool released = false) {
    std::string bytes;
    ledger::format::append_reservation(
        {.event = entry(id, time), .expires = time + life, .released = released}, bytes);
    store_->add("u", bytes);
  }

  Instant now_ = wall_now();
  std::shared_ptr<ReservingStore> store_ = std::make_shared<ReservingStore>();
  std::unique_ptr<Checker> checker_;
};

TEST_F(Reserve, TakesThePlaceAndSaysForHowLong) {
  const ReserveResult first = reserve("a");
  EXPECT_TRUE(first.allowed);
  EXPECT_FALSE(first.unknown);
  EXPECT_EQ(first.reason, ReserveReason::kDone);
  EXPECT_EQ(first.time, now_);
  EXPECT_EQ(first.expires, now_ + 15min);
  ASSERT_EQ(ledger().reservations().size(), 1U);
  EXPECT_EQ(ledger().size(), 0U);

  const ReserveResult second = reserve("b");
  EXPECT_FALSE(second.allowed);
  EXPECT_EQ(second.reason, ReserveReason::kCapped);
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
  EXPECT_EQ(reserve("c", "c1", {.life = 0s}).reason, ReserveReason::kInvalid);
}

TEST_F(Reserve, ARepetitionGivesTheFirstAnswerAndTheFirstExpiry) {
  const ReserveResult first = reserve("a");
  const std::string before = store_->record("u");
  now_ += 1min;
  const ReserveResult again = reserve("a");
  EXPECT_TRUE(again.allowed);
  EXPECT_EQ(again.reason, ReserveReason::kRepeated);
  EXPECT_EQ(again.time, first.time);
  EXPECT_EQ(again.expires, first.expires);
  EXPECT_EQ(store_->record("u"), before);
}

TEST_F(Reserve, AnExpiredOneIsDecidedAnew) {
  reserve("a");
  now_ += 16min;
  const ReserveResult again = reserve("a");
  EXPECT_TRUE(again.allowed);
  EXPECT_EQ(again.reason, ReserveReason::kDone);
  EXPECT_EQ(again.expires, now_ + 15min);
}

TEST_F(Reserve, AnEventOfThisIdIsAllowedAndNothingIsWritten) {
  confirm("a", now_ - 1min);
  const std::string before = store_->record("u");
  const ReserveResult result = reserve("a");
  EXPECT_TRUE(result.allowed);
  EXPECT_EQ(result.reason, ReserveReason::kRepeated);
  EXPECT_EQ(result.time, now_ - 1min);
  EXPECT_EQ(result.expires, std::nullopt);
  EXPECT_EQ(store_->record("u"), before);
}

TEST_F(Reserve, TheLaterEventIsNotCountedBesideItsReservation) {
  limit("c1", 2);
  const ReserveResult first = reserve("a");
  confirm("a", first.time);
  EXPECT_TRUE(reserve("b").allowed);
  EXPECT_FALSE(reserve("c").allowed);
}

TEST_F(Reserve, AReleasedPlaceIsFreeAndItsIdIsRefused) {
  reserve("a");
  EXPECT_TRUE(release("a").allowed);
  const ReserveResult again = reserve("a");
  EXPECT_FALSE(again.allowed);
  EXPECT_EQ(again.reason, ReserveReason::kReleased);
  EXPECT_FALSE(record("a").allowed);
  EXPECT_TRUE(reserve("b").allowed);
}

TEST_F(Reserve, AReleaseNeedsNoReadAndMayComeFirst) {
  EXPECT_TRUE(release("a").allowed);
  EXPECT_EQ(store_->reads, 0);
  EXPECT_EQ(reserve("a").reason, ReserveReason::kReleased);
}

TEST_F(Reserve, AReleaseThatArrivesBeforeItsReservationStillWins) {
  release("a");
  add_reservation("a", now_, 15min);
  EXPECT_TRUE(reserve("b").allowed);
}

TEST_F(Reserve, AnEventAfterAReleaseCounts) {
  const ReserveResult first = reserve("a");
  release("a");
  confirm("a", first.time);
  EXPECT_FALSE(reserve("b").allowed);
  EXPECT_EQ(reserve("a").reason, ReserveReason::kRepeated);
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

TEST_F(Reserve, ARecordedEventIsInTheLedgerAtOnce) {
  const ReserveResult first = record("a");
  EXPECT_TRUE(first.allowed);
  EXPECT_EQ(first.reason, ReserveReason::kDone);
  EXPECT_EQ(first.expires, std::nullopt);
  EXPECT_EQ(ledger().size(), 1U);
  EXPECT_EQ(ledger().reservations().size(), 0U);
  EXPECT_EQ(record("a").reason, ReserveReason::kRepeated);
  EXPECT_EQ(record("b").reason, ReserveReason::kCapped);
}

TEST_F(Reserve, RecordTurnsAReservationIntoItsEvent) {
  const ReserveResult reserved = reserve("a");
  now_ += 10min;
  const ReserveResult recorded = record("a");
  EXPECT_TRUE(recorded.allowed);
  EXPECT_EQ(recorded.time, reserved.time);
  EXPECT_EQ(recorded.expires, std::nullopt);
  ASSERT_EQ(ledger().size(), 1U);
  EXPECT_EQ(ledger().times().front(), reserved.time);
  now_ += 10min;
  EXPECT_FALSE(reserve("b").allowed);
}

TEST_F(Reserve, WhatThisProcessHasShownCounts) {
  checker_->note_shown("u", {"c1"}, "a");
  EXPECT_EQ(reserve("b").reason, ReserveReason::kCapped);
  // But not against itself.
  EXPECT_EQ(reserve("a").reason, ReserveReason::kDone);
}

TEST_F(Reserve, EveryRuleOfTheCandidateMustAllow) {
  Rule user = sliding_rule("user-daily", "", 2);
  user.scope = Scope::kUser;
  checker_->set_rules(rule_set({sliding_rule("c1-daily", "c1", 5), user}));
  EXPECT_TRUE(reserve("a").allowed);
  EXPECT_TRUE(reserve("b", "c2").allowed);
  const ReserveResult third = reserve("c", "c3");
  EXPECT_FALSE(third.allowed);
  EXPECT_EQ(third.verdict.rule_id, "user-daily");
}

// --- What it starts from, and races.

TEST_F(Reserve, AfterACheckItTakesOneExchange) {
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  ASSERT_TRUE(check.verdicts[0].allowed);
  EXPECT_TRUE(reserve("a", "c1", {.after = &check}).allowed);
  EXPECT_EQ(store_->reads, 0);
  EXPECT_EQ(store_->exchanges, 1);
}

TEST_F(Reserve, ACheckThatWasOvertakenCostsOneReadMore) {
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  reserve("a");
  store_->reads = store_->exchanges = 0;
  EXPECT_EQ(reserve("b", "c1", {.after = &check}).reason, ReserveReason::kCapped);
  EXPECT_EQ(store_->exchanges, 1);
  EXPECT_EQ(store_->reads, 1);
}

TEST_F(Reserve, ARefusalNeverRestsOnAnOldRecord) {
  reserve("a");
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  release("a");
  EXPECT_TRUE(reserve("b", "c1", {.after = &check}).allowed);
}

TEST_F(Reserve, ARepetitionNeverRestsOnAnOldRecord) {
  reserve("a");
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  release("a");
  EXPECT_EQ(reserve("a", "c1", {.after = &check}).reason, ReserveReason::kReleased);
}

TEST_F(Reserve, ACheckOfAnotherUserIsNotUsed) {
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("v", candidates, {.keep_record = true});
  EXPECT_TRUE(reserve("a", "c1", {.after = &check}).allowed);
  EXPECT_EQ(store_->reads, 1);
}

TEST_F(Reserve, WhoeverIsSecondReadsAgainAndIsRefused) {
  store_->before_exchange = [this] { add_reservation("other", now_, 15min); };
  EXPECT_EQ(reserve("a").reason, ReserveReason::kCapped);
  EXPECT_EQ(store_->reads, 2);
  EXPECT_EQ(checker_->stats().reserves.conflicts, 1U);
}

TEST_F(Reserve, EvenAnAppendIsAConflict) {
  limit("c1", 5);
  store_->before_exchange = [this] { confirm("other", now_); };
  EXPECT_TRUE(reserve("a").allowed);
  EXPECT_EQ(store_->exchanges, 2);
  EXPECT_EQ(ledger().size(), 1U);
  EXPECT_EQ(ledger().reservations().size(), 1U);
}

TEST_F(Reserve, RetriesAreBounded) {
  limit("c1", 1000);
  int others = 0;
  std::function<void()> write = [&] {
    confirm("other" + std::to_string(++others), now_ - 48h);
    store_->before_exchange = write;
  };
  store_->before_exchange = write;
  const ReserveResult result = reserve("a");
  store_->before_exchange = nullptr;
  EXPECT_FALSE(result.allowed);
  EXPECT_FALSE(result.unknown);
  EXPECT_EQ(result.reason, ReserveReason::kConflict);
  EXPECT_EQ(others, 32);
}

// --- Failures.

TEST_F(Reserve, ATimeoutAfterSendingIsAnOutcomeOfItsOwnAndMayBeRepeated) {
  for (const bool is_executed : {true, false}) {
    make({});
    store_->lose_answer = ReservingStore::LostAnswer{.is_executed = is_executed};
    const std::string id = is_executed ? "a" : "b";
    const std::string user = "u" + id;
    const ReserveResult first = checker_->reserve(user, {"c1"}, id);
    EXPECT_FALSE(first.allowed);
    EXPECT_TRUE(first.unknown);
    EXPECT_EQ(first.reason, ReserveReason::kTimeout);
    const ReserveResult again = checker_->reserve(user, {"c1"}, id);
    EXPECT_TRUE(again.allowed);
    EXPECT_EQ(again.reason, is_executed ? ReserveReason::kRepeated : ReserveReason::kDone);
    EXPECT_FALSE(checker_->reserve(user, {"c1"}, "other").allowed);
    EXPECT_EQ(checker_->stats().reserves.unknown, 1U);
  }
}

TEST_F(Reserve, AfterALostConnectionTheRecordTells) {
  store_->lose_answer = ReservingStore::LostAnswer{.code = StoreCode::kUnavailable};
  const ReserveResult result = reserve("a");
  EXPECT_TRUE(result.allowed);
  EXPECT_FALSE(result.unknown);
  EXPECT_EQ(result.reason, ReserveReason::kRepeated);
}

TEST_F(Reserve, AfterALostConnectionWithoutARecordItIsUnknown) {
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  store_->lose_answer = ReservingStore::LostAnswer{.code = StoreCode::kUnavailable};
  store_->read_fails = StoreCode::kUnavailable;
  const ReserveResult result = reserve("a", "c1", {.after = &check});
  EXPECT_TRUE(result.unknown);
  EXPECT_EQ(result.reason, ReserveReason::kUnavailable);
}

TEST_F(Reserve, FailsClosedUnlessToldOtherwise) {
  store_->read_fails = StoreCode::kUnavailable;
  EXPECT_FALSE(reserve("a").allowed);
  EXPECT_FALSE(reserve("a").unknown);
  const ReserveResult open = reserve("a", "c1", {.allow_undecided = true});
  EXPECT_TRUE(open.allowed);
  EXPECT_EQ(open.reason, ReserveReason::kUnavailable);
  EXPECT_EQ(open.expires, std::nullopt);
  store_->read_fails.reset();
  reserve("a");
  EXPECT_FALSE(reserve("b", "c1", {.allow_undecided = true}).allowed) << "capped is decided";
}

TEST_F(Reserve, EveryFailureOfTheStoreIsNamed) {
  for (const auto& [code, reason] : {std::pair{StoreCode::kTimeout, ReserveReason::kTimeout},
                                     {StoreCode::kBreakerOpen, ReserveReason::kBreakerOpen},
                                     {StoreCode::kOverloaded, ReserveReason::kOverloaded},
                                     {StoreCode::kServerError, ReserveReason::kUnavailable},
                                     {StoreCode::kTooLarge, ReserveReason::kUndecodable}}) {
    store_->read_fails = code;
    const ReserveResult result = reserve("a");
    EXPECT_EQ(result.reason, reason);
    EXPECT_FALSE(result.unknown);
  }
  store_->read_fails.reset();
  for (const auto& [code, reason] :
       {std::pair{StoreCode::kBreakerOpen, ReserveReason::kBreakerOpen},
        {StoreCode::kOverloaded, ReserveReason::kOverloaded},
        {StoreCode::kServerError, ReserveReason::kUnavailable}}) {
    store_->lose_answer = ReservingStore::LostAnswer{.code = code, .is_executed = false};
    const ReserveResult result = reserve("a");
    EXPECT_EQ(result.reason, reason);
    EXPECT_FALSE(result.unknown) << "nothing was written";
  }
}

TEST_F(Reserve, ARecordThatCannotBeReadRefuses) {
  store_->add("u", "nonsense");
  EXPECT_EQ(reserve("a").reason, ReserveReason::kUndecodable);
}

TEST_F(Reserve, WithoutRulesNothingIsReserved) {
  checker_->set_rules(nullptr);
  EXPECT_EQ(reserve("a").reason, ReserveReason::kNoRules);
}

TEST_F(Reserve, BadArgumentsAreNamed) {
  EXPECT_EQ(reserve("").reason, ReserveReason::kInvalid);
  EXPECT_EQ(reserve("a", "").reason, ReserveReason::kInvalid);
  EXPECT_EQ(reserve(std::string(257, 'x')).reason, ReserveReason::kInvalid);
  EXPECT_EQ(checker_->reserve("", {"c1"}, "a").reason, ReserveReason::kNoUser);
  EXPECT_EQ(release("").reason, ReserveReason::kInvalid);
  EXPECT_EQ(checker_->release("", {"c1"}, "a").reason, ReserveReason::kNoUser);
  EXPECT_EQ(store_->exchanges + store_->appends + store_->reads, 0);
}

// --- When it is not allowed to write.

TEST_F(Reserve, NothingIsWrittenBeforeTheUpdaterAllowsTheFormat) {
  for (const int format : {0, 1}) {
    store_->terms.write_format = format;
    for (const ReserveResult& result : {reserve("a"), record("a"), release("a")}) {
      EXPECT_FALSE(result.allowed);
      EXPECT_EQ(result.reason, ReserveReason::kWriteFormat);
    }
  }
  EXPECT_NE(describe(ReserveReason::kWriteFormat).find("ledger.write_format"),
            std::string_view::npos);
  store_->terms = {.write_format = 2, .reservation_life_max = 0s};
  EXPECT_EQ(reserve("a").reason, ReserveReason::kWriteFormat);
  EXPECT_EQ(store_->exchanges + store_->appends, 0);
}

TEST_F(Reserve, AClockMoreThanTenSecondsAwayRefuses) {
  store_->terms.has_clock = true;
  EXPECT_EQ(reserve("a").reason, ReserveReason::kClock) << "not known yet";
  store_->terms.clock_difference = 12s;
  EXPECT_EQ(reserve("a").reason, ReserveReason::kClock);
  store_->terms.clock_difference = -12s;
  EXPECT_EQ(reserve("a").reason, ReserveReason::kClock);
  store_->terms.clock_difference = 8s;
  now_ = wall_now();
  EXPECT_TRUE(reserve("a").allowed);
}

TEST_F(Reserve, TheInstantThatTheCallerGivesIsHeldToRedisClockToo) {
  store_->terms.has_clock = true;
  store_->terms.clock_difference = 0s;
  EXPECT_EQ(reserve("a", "c1", {.now = wall_now() - 1min}).reason, ReserveReason::kClock);
}

TEST_F(Reserve, AUserHasAtMost64LiveReservations) {
  limit("c1", 1000);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(reserve("r" + std::to_string(i)).allowed);
  EXPECT_EQ(reserve("one-more").reason, ReserveReason::kTooMany);
  EXPECT_EQ(reserve("r7").reason, ReserveReason::kRepeated);
  EXPECT_TRUE(record("event").allowed) << "an event is no reservation";
  confirm("r0", now_);
  EXPECT_TRUE(reserve("one-more").allowed);
}

TEST_F(Reserve, ALongRecordHasNoRoom) {
  limit("c1", 100'000);
  store_->terms.record_bytes_max = 1000;
  for (int i = 0; i < 40; ++i) confirm("e" + std::to_string(i), now_);  // 760 bytes
  EXPECT_EQ(reserve("a").reason, ReserveReason::kTooLong);
  EXPECT_TRUE(record("a").allowed);
}

TEST_F(Reserve, ARuleThatReachesIntoAnOpenGapRefuses) {
  store_->missing = now_ - 1h;
  const ReserveResult result = reserve("a");
  EXPECT_FALSE(result.allowed);
  EXPECT_EQ(result.reason, ReserveReason::kIncomplete);
  store_->missing = now_ - 25h;
  EXPECT_TRUE(reserve("a").allowed);
}

TEST_F(Reserve, ARuleThatReachesIntoWhatWasTrimmedRefuses) {
  std::string bytes;
  ledger::format::append_marker(ledger::format::Tag::kCompleteSince, now_ - 1h, bytes);
  store_->add("u", bytes);
  EXPECT_EQ(reserve("a").reason, ReserveReason::kIncomplete);
}

TEST_F(Reserve, EveryEndIsCounted) {
  reserve("a");
  reserve("a");
  reserve("b");
  release("a");
  reserve("a");
  const CheckerStats::Reserves counted = checker_->stats().reserves;
  const auto ended = [&](ReserveReason reason) {
    return counted.ended[static_cast<std::size_t>(reason)];
  };
  EXPECT_EQ(counted.calls, 5U);
  EXPECT_EQ(ended(ReserveReason::kDone), 2U);
  EXPECT_EQ(ended(ReserveReason::kRepeated), 1U);
  EXPECT_EQ(ended(ReserveReason::kCapped), 1U);
  EXPECT_EQ(ended(ReserveReason::kReleased), 1U);
}

TEST_F(Reserve, InsideACallbackItIsRefused) {
  ReserveReason reason{};
  const Candidate candidates[] = {{"c1"}};
  std::atomic<bool> ran{false};
  checker_->check_async("u", candidates, {}, [&](const CheckResult&) {
    reason = reserve("a").reason;
    ran = true;
  });
  while (!ran) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(reason, ReserveReason::kReentrant);
}

}  // namespace
}  // namespace fcap::checker_test
