// When a hard call fails, or is not allowed to write.
#include <future>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "checker/seen_record.h"
#include "reserve_fixture.h"

namespace fcap::checker_test {
namespace reserve_refusals_test {

// --- Failures.

TEST_F(Reserve, ATimeoutAfterSendingIsAnOutcomeOfItsOwnAndMayBeRepeated) {
  for (const bool is_executed : {true, false}) {
    make({});
    store_->lose_answer = ReservingStore::LostAnswer{.is_executed = is_executed};
    const std::string id = is_executed ? "a" : "b";
    const std::string user = "u" + id;
    const HardResult first = checker_->hard({HardCall::kReserve, {user, {"c1"}, id}});
    EXPECT_FALSE(first.allowed);
    EXPECT_TRUE(first.unknown);
    EXPECT_EQ(first.reason, Reason::kTimeout);
    const HardResult again = checker_->hard({HardCall::kReserve, {user, {"c1"}, id}});
    EXPECT_TRUE(again.allowed);
    EXPECT_EQ(again.reason, is_executed ? Reason::kRepeated : Reason::kDone);
    EXPECT_FALSE(checker_->hard({HardCall::kReserve, {user, {"c1"}, "other"}}).allowed);
    EXPECT_EQ(checker_->stats().hard.unknown, 1U);
  }
}

TEST_F(Reserve, AfterALostConnectionTheRecordTells) {
  store_->lose_answer = ReservingStore::LostAnswer{.code = StoreCode::kUnavailable};
  const HardResult result = reserve("a");
  EXPECT_TRUE(result.allowed);
  EXPECT_FALSE(result.unknown);
  EXPECT_EQ(result.reason, Reason::kRepeated);
}

TEST_F(Reserve, AfterALostConnectionWithoutARecordItIsUnknown) {
  const Candidate candidates[] = {{"c1"}};
  const CheckResult check = checker_->check("u", candidates, {.keep_record = true});
  store_->lose_answer = ReservingStore::LostAnswer{.code = StoreCode::kUnavailable};
  store_->read_fails = StoreCode::kUnavailable;
  const HardResult result = reserve("a", "c1", {}, check.token);
  EXPECT_TRUE(result.unknown);
  EXPECT_EQ(result.reason, Reason::kUnavailable);
}

// What was sent on the lost connection may come through after the record has been read.
TEST_F(Reserve, AnUnchangedRecordDoesNotTellThatNothingWillBeWritten) {
  store_->before_exchange = [this] {
    store_->lose_answer =
        ReservingStore::LostAnswer{.code = StoreCode::kUnavailable, .is_executed = false};
    store_->before_exchange = [this] {
      store_->lose_answer =
          ReservingStore::LostAnswer{.code = StoreCode::kOverloaded, .is_executed = false};
    };
  };
  const HardResult result = reserve("a");
  EXPECT_EQ(store_->exchanges, 2);
  EXPECT_EQ(result.reason, Reason::kOverloaded);
  EXPECT_TRUE(result.unknown) << "the first exchange may still be executed";
}

TEST_F(Reserve, AChangedRecordTells) {
  store_->before_exchange = [this] {
    store_->lose_answer =
        ReservingStore::LostAnswer{.code = StoreCode::kUnavailable, .is_executed = false};
    confirm("other", now_ - 48h);
    store_->before_exchange = [this] {
      store_->lose_answer =
          ReservingStore::LostAnswer{.code = StoreCode::kOverloaded, .is_executed = false};
    };
  };
  const HardResult result = reserve("a");
  EXPECT_EQ(result.reason, Reason::kOverloaded);
  EXPECT_FALSE(result.unknown) << "neither exchange can succeed any more";
}

TEST_F(Reserve, ARecordThatCannotBeReadDoesNotTell) {
  store_->before_exchange = [this] {
    store_->lose_answer = ReservingStore::LostAnswer{.code = StoreCode::kUnavailable};
    store_->after_exchange = [this] { store_->add("u", "nonsense"); };
  };
  const HardResult result = reserve("a");
  EXPECT_EQ(result.reason, Reason::kUndecodable);
  EXPECT_TRUE(result.unknown) << "it was written";
}

TEST_F(Reserve, FailsClosedUnlessToldOtherwise) {
  store_->read_fails = StoreCode::kUnavailable;
  EXPECT_FALSE(reserve("a").allowed);
  EXPECT_FALSE(reserve("a").unknown);
  const HardResult open = reserve("a", "c1", {.allow_undecided = true});
  EXPECT_TRUE(open.allowed);
  EXPECT_EQ(open.reason, Reason::kUnavailable);
  EXPECT_EQ(open.expires, std::nullopt);
  store_->read_fails.reset();
  reserve("a");
  EXPECT_FALSE(reserve("b", "c1", {.allow_undecided = true}).allowed) << "capped is decided";
}

TEST_F(Reserve, AMistakeOfTheCallerIsRefusedWhateverItSaysOfUndecidedCalls) {
  const HardOptions open{.allow_undecided = true};
  const std::string too_long(257, 'x');
  EXPECT_FALSE(reserve("a", "", open).allowed);
  EXPECT_FALSE(reserve(too_long, "c1", open).allowed);
  EXPECT_FALSE(checker_->hard({HardCall::kReserve, {too_long, {"c1"}, "a"}}, open).allowed);
  EXPECT_FALSE(checker_->hard({HardCall::kRecord, {"u", {"c1"}, ""}}, open).allowed);
}

TEST_F(Reserve, EveryFailureOfTheStoreIsNamed) {
  for (const auto& [code, reason] : {std::pair{StoreCode::kTimeout, Reason::kTimeout},
                                     {StoreCode::kBreakerOpen, Reason::kBreakerOpen},
                                     {StoreCode::kOverloaded, Reason::kOverloaded},
                                     {StoreCode::kServerError, Reason::kUnavailable},
                                     {StoreCode::kTooLarge, Reason::kUndecodable}}) {
    store_->read_fails = code;
    const HardResult result = reserve("a");
    EXPECT_EQ(result.reason, reason);
    EXPECT_FALSE(result.unknown);
  }
  store_->read_fails.reset();
  for (const auto& [code, reason] : {std::pair{StoreCode::kBreakerOpen, Reason::kBreakerOpen},
                                     {StoreCode::kOverloaded, Reason::kOverloaded},
                                     {StoreCode::kServerError, Reason::kUnavailable}}) {
    store_->lose_answer = ReservingStore::LostAnswer{.code = code, .is_executed = false};
    const HardResult result = reserve("a");
    EXPECT_EQ(result.reason, reason);
    EXPECT_FALSE(result.unknown) << "nothing was written";
  }
}

TEST_F(Reserve, AReleaseWhoseBytesAreThereMayHaveHappened) {
  store_->append_fails = StoreCode::kServerError;
  EXPECT_FALSE(release("a").unknown) << "nothing was written";
  store_->append_fails_at_bytes = 20;  // only its expiry was refused
  const HardResult result = release("a");
  EXPECT_EQ(result.reason, Reason::kUnavailable);
  EXPECT_TRUE(result.unknown);
  std::promise<HardResult> answer;
  checker_->hard_async({HardCall::kRelease, {"u", {"c1"}, "a"}}, {},
                       [&](HardResult given) { answer.set_value(std::move(given)); });
  EXPECT_TRUE(answer.get_future().get().unknown);
}

TEST_F(Reserve, ARecordThatCannotBeReadRefuses) {
  store_->add("u", "nonsense");
  EXPECT_EQ(reserve("a").reason, Reason::kUndecodable);
}

TEST_F(Reserve, WithoutRulesNothingIsReserved) {
  checker_->set_rules(nullptr);
  EXPECT_EQ(reserve("a").reason, Reason::kNoRules);
}

TEST_F(Reserve, BadArgumentsAreNamed) {
  EXPECT_EQ(reserve("").reason, Reason::kInvalid);
  EXPECT_EQ(reserve("a", "").reason, Reason::kInvalid);
  EXPECT_EQ(reserve(std::string(257, 'x')).reason, Reason::kInvalid);
  EXPECT_EQ(checker_->hard({HardCall::kReserve, {"", {"c1"}, "a"}}).reason, Reason::kNoUser);
  EXPECT_EQ(release("").reason, Reason::kInvalid);
  EXPECT_EQ(checker_->hard({HardCall::kRelease, {"", {"c1"}, "a"}}).reason, Reason::kNoUser);
  EXPECT_EQ(store_->exchanges + store_->appends + store_->reads, 0);
}

// --- When it is not allowed to write.

TEST_F(Reserve, NothingIsWrittenWithoutTheUpdatersConfiguration) {
  store_->terms = {};
  for (const HardResult& result : {reserve("a"), record("a"), release("a")}) {
    EXPECT_FALSE(result.allowed);
    EXPECT_EQ(result.reason, Reason::kNoConfig);
  }
  EXPECT_EQ(store_->exchanges + store_->appends, 0);
}

// Not no_config, which would blame the updater.
TEST(ReserveWithoutRedis, ARedisThatWasNeverReachedIsUnavailable) {
  CheckerOptions options = patient_options();
  options.redis.addresses = {"127.0.0.1:1"};
  auto made = Checker::create(std::move(options));
  ASSERT_TRUE(made.ok()) << made.status().text();
  made.value()->set_rules(rule_set({sliding_rule("r", "c1", 1)}));
  EXPECT_EQ(made.value()->hard({HardCall::kReserve, {"u", {"c1"}, "a"}}).reason,
            Reason::kUnavailable);
  EXPECT_EQ(made.value()->hard({HardCall::kRelease, {"u", {"c1"}, "a"}}).reason,
            Reason::kUnavailable);
}

TEST_F(Reserve, ALifeOfItsOwnDoesNotHideThatReservationsAreNotAllowed) {
  store_->terms = {};
  EXPECT_EQ(reserve("a", "c1", {.life = 10s}).reason, Reason::kNoConfig);
  EXPECT_EQ(reserve("a", "c1", {.life = 0s}).reason, Reason::kInvalid);
  EXPECT_EQ(reserve("a", "c1", {.life = -1s}).reason, Reason::kInvalid);
}

TEST_F(Reserve, AClockMoreThanTenSecondsAwayRefuses) {
  store_->terms.has_clock = true;
  EXPECT_EQ(reserve("a").reason, Reason::kClock) << "not known yet";
  store_->terms.clock_difference = 12s;
  EXPECT_EQ(reserve("a").reason, Reason::kClock);
  store_->terms.clock_difference = -12s;
  EXPECT_EQ(reserve("a").reason, Reason::kClock);
  store_->terms.clock_difference = 8s;
  now_ = wall_now();
  EXPECT_TRUE(reserve("a").allowed);
}

TEST_F(Reserve, TheInstantThatTheCallerGivesIsHeldToRedisClockToo) {
  store_->terms.has_clock = true;
  store_->terms.clock_difference = 0s;
  EXPECT_EQ(checker_->hard({HardCall::kReserve, {"u", {"c1"}, "a", wall_now() - 1min}}).reason,
            Reason::kClock);
}

TEST_F(Reserve, AnInstantThatNoRecordCanHoldIsRefusedByWhateverClock) {
  for (const bool has_clock : {true, false}) {
    store_->terms.has_clock = has_clock;
    store_->terms.clock_difference = 0s;
    for (const Instant now : {Instant::min(), Instant{} - 1ms, Instant::max()}) {
      EXPECT_EQ(checker_->hard({HardCall::kReserve, {"u", {"c1"}, "a", now}}).reason,
                Reason::kClock);
      EXPECT_TRUE(checker_->note_shown(
          {"v", {"c1"}, "a", now, checker::SeenRecord{.known = true}.token()}, Note::kEverywhere));
    }
  }
  EXPECT_EQ(store_->exchanges + store_->appends, 0);
}

TEST_F(Reserve, AUserHasAtMost64LiveReservations) {
  limit("c1", 1000);
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(reserve("r" + std::to_string(i)).allowed);
  EXPECT_EQ(reserve("one-more").reason, Reason::kTooMany);
  EXPECT_EQ(reserve("r7").reason, Reason::kRepeated);
  EXPECT_TRUE(record("event").allowed) << "an event is no reservation";
  confirm("r0", now_);
  EXPECT_TRUE(reserve("one-more").allowed);
}

TEST_F(Reserve, ALongRecordHasNoRoom) {
  limit("c1", 100'000);
  store_->terms.record_bytes_max = 1000;
  for (int i = 0; i < 40; ++i) confirm("e" + std::to_string(i), now_);  // 760 bytes
  EXPECT_EQ(reserve("a").reason, Reason::kTooLong);
  EXPECT_TRUE(record("a").allowed);
}

TEST_F(Reserve, ARuleThatReachesIntoAnOpenGapRefuses) {
  store_->missing = now_ - 1h;
  const HardResult result = reserve("a");
  EXPECT_FALSE(result.allowed);
  EXPECT_EQ(result.reason, Reason::kIncomplete);
  store_->missing = now_ - 25h;
  EXPECT_TRUE(reserve("a").allowed);
}

TEST_F(Reserve, AGapThatLacksNoEventsOfTheUserRefusesNothing) {
  store_->missing = now_ - 1h;
  store_->only_missing_in = "fcap:{u}";
  EXPECT_EQ(reserve("a").reason, Reason::kIncomplete);
  store_->only_missing_in = "fcap:{another}";
  EXPECT_TRUE(reserve("a").allowed);
  EXPECT_EQ(record("b").reason, Reason::kCapped);
}

TEST_F(Reserve, ARuleThatReachesIntoWhatWasTrimmedRefuses) {
  std::string bytes;
  ledger::format::append_marker(ledger::format::Tag::kCompleteSince, now_ - 1h, bytes);
  store_->add("u", bytes);
  EXPECT_EQ(reserve("a").reason, Reason::kIncomplete);
}

TEST_F(Reserve, EveryEndIsCounted) {
  reserve("a");
  reserve("a");
  reserve("b");
  release("a");
  reserve("a");
  const CheckerStats::Hard counted = checker_->stats().hard;
  EXPECT_EQ(counted.calls, 5U);
  EXPECT_EQ(counted.ended[Reason::kDone], 2U);
  EXPECT_EQ(counted.ended[Reason::kRepeated], 1U);
  EXPECT_EQ(counted.ended[Reason::kCapped], 1U);
  EXPECT_EQ(counted.ended[Reason::kReleased], 1U);
}

TEST_F(Reserve, InsideACallbackItIsRefused) {
  Reason reason{};
  const Candidate candidates[] = {{"c1"}};
  std::atomic<bool> ran{false};
  checker_->check_async("u", candidates, {}, [&](const CheckResult&) {
    reason = reserve("a").reason;
    ran = true;
  });
  while (!ran) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(reason, Reason::kReentrant);
}

TEST_F(Reserve, ARefusedReleaseIsNeverAllowed) {
  HardResult released{.allowed = true};
  const Candidate candidates[] = {{"c1"}};
  std::atomic<bool> ran{false};
  checker_->check_async("u", candidates, {}, [&](const CheckResult&) {
    released = checker_->hard({HardCall::kRelease, {"u", {"c1"}, "a"}}, {.allow_undecided = true});
    ran = true;
  });
  while (!ran) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(released.reason, Reason::kReentrant);
  EXPECT_FALSE(released.allowed) << "nothing was released";
}

// The impression that was reserved is the one that is given up, however long ago it was to be
// shown.
TEST_F(Reserve, AReleaseIsOfNow) {
  now_ = wall_now();
  store_->terms.has_clock = true;
  store_->terms.clock_difference = std::chrono::milliseconds{0};
  const Impression late{.subject = "u", .candidate = {"c1"}, .event_id = "a", .at = now_ - 20s};
  EXPECT_EQ(checker_->hard({HardCall::kReserve, late}).reason, Reason::kClock);
  EXPECT_EQ(checker_->hard({HardCall::kRelease, late}).reason, Reason::kDone);
}

}  // namespace reserve_refusals_test
}  // namespace fcap::checker_test
