// note_shown() with Note::kEverywhere, take_back_shown(), shared pages.
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "checker/seen_record.h"
#include "fixtures.h"
#include "holding_store.h"
#include "reserving_store.h"
#include "tests/support/picked.h"

namespace fcap::checker_test {
namespace shared_notes_test {

class SharedNotes : public ::testing::Test {
 protected:
  std::unique_ptr<Checker> server(CheckerOptions options = patient_options()) {
    options.store = store_;
    options.clock = [this] { return now_; };
    auto made = Checker::create(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().text();
    made.value()->set_rules(
        rule_set({sliding_rule("c1-daily", "c1", 1), sliding_rule("c2-daily", "c2", 1)}));
    return std::move(made).value();
  }
  static CheckResult check(Checker& checker) {
    const Candidate candidates[] = {{"c1"}};
    return checker.check("u", candidates);
  }
  static std::future<PagePicks> pick_async(Checker& checker, std::span<const Candidate> ranked,
                                           std::span<const std::string_view> ids) {
    std::promise<PagePicks> promise;
    auto answer = promise.get_future();
    checker.pick_async({Promise::kShared, "u", ranked, ids}, {},
                       [promise = std::move(promise)](PagePicks picks) mutable {
                         promise.set_value(std::move(picks));
                       });
    return answer;
  }
  ledger::Ledger ledger() {
    ledger::Ledger ledger;
    EXPECT_EQ(ledger.decode(store_->record("u")), ledger::DecodeCode::kOk);
    return ledger;
  }

  Instant now_ = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  std::shared_ptr<ReservingStore> store_ = std::make_shared<ReservingStore>();
  std::unique_ptr<Checker> here_ = server();
  std::unique_ptr<Checker> there_ = server();
};

TEST_F(SharedNotes, AnotherServerCountsThemForFiveMinutes) {
  EXPECT_TRUE(here_->note_shown({"u", {"c1"}, "a", {}, check(*here_).token}, Note::kEverywhere));
  EXPECT_EQ(here_->stats().shares.shared, 1U);
  EXPECT_EQ(there_->hard({HardCall::kReserve, {"u", {"c1"}, "b"}}).reason, Reason::kCapped);
  now_ += 5min - 1ms;
  EXPECT_EQ(there_->hard({HardCall::kReserve, {"u", {"c1"}, "b"}}).reason, Reason::kCapped);
  now_ += 1ms;
  EXPECT_TRUE(there_->hard({HardCall::kReserve, {"u", {"c1"}, "b"}}).allowed);
}

TEST_F(SharedNotes, WithoutShareOthersDoNotSeeThem) {
  here_->note_shown({"u", {"c1"}, "a"});
  EXPECT_EQ(store_->appends, 0);
  EXPECT_TRUE(there_->hard({HardCall::kReserve, {"u", {"c1"}, "b"}}).allowed);
}

TEST_F(SharedNotes, TakenBackTheyAreGoneEverywhere) {
  here_->note_shown({"u", {"c1"}, "a", {}, check(*here_).token}, Note::kEverywhere);
  EXPECT_TRUE(here_->take_back_shown({"u", {"c1"}, "a"}));
  EXPECT_TRUE(check(*here_).verdicts[0].allowed);
  EXPECT_TRUE(there_->hard({HardCall::kReserve, {"u", {"c1"}, "b"}}).allowed);
  EXPECT_EQ(here_->stats().shares.taken_back, 1U);
}

TEST_F(SharedNotes, ALocalNoteIsTakenBackWithoutAWrite) {
  here_->note_shown({"u", {"c1"}, "a"});
  EXPECT_TRUE(here_->take_back_shown({"u", {"c1"}, "a"}));
  EXPECT_EQ(store_->appends, 0);
}

TEST_F(SharedNotes, WhatWasNotSharedIsTakenBackWithoutAWrite) {
  const checker::SeenRecord full{.known = true, .bytes = 100, .reservations = 64};
  here_->note_shown({"u", {"c1"}, "a", {}, full.token()}, Note::kEverywhere);
  EXPECT_TRUE(here_->take_back_shown({"u", {"c1"}, "a"}));
  store_->terms.reservation_life_max = 0s;
  here_->note_shown({"u", {"c1"}, "b", {}, check(*here_).token}, Note::kEverywhere);
  EXPECT_TRUE(here_->take_back_shown({"u", {"c1"}, "b"}));
  const Candidate ranked[] = {{"c1"}};
  const std::string_view ids[] = {"c"};
  EXPECT_EQ(picked(here_->pick({Promise::kShared, "u", ranked, ids})).size(), 1U);
  EXPECT_TRUE(here_->take_back_shown({"u", {"c1"}, "c"}));
  EXPECT_EQ(store_->appends, 0);
  EXPECT_EQ(here_->stats().shares.taken_back, 0U);
}

TEST_F(SharedNotes, APageThatWasSharedIsTakenBackEverywhere) {
  const Candidate ranked[] = {{"c1"}, {"c2"}};
  const std::string_view ids[] = {"s1", "s2"};
  here_->pick({Promise::kShared, "u", ranked, ids});
  EXPECT_TRUE(here_->take_back_shown({"u", {"c2"}, "s2"}));
  EXPECT_FALSE(there_->hard({HardCall::kReserve, {"u", {"c1"}, "b"}}).allowed);
  EXPECT_TRUE(there_->hard({HardCall::kReserve, {"u", {"c2"}, "b"}}).allowed);
}

TEST_F(SharedNotes, TheEventReplacesItsNote) {
  here_->note_shown({"u", {"c1"}, "a", {}, check(*here_).token}, Note::kEverywhere);
  EXPECT_TRUE(there_->hard({HardCall::kRecord, {"u", {"c1"}, "a"}}).allowed);
  EXPECT_EQ(ledger().size(), 1U);
  EXPECT_EQ(there_->hard({HardCall::kReserve, {"u", {"c1"}, "a"}}).reason, Reason::kRepeated);
}

TEST_F(SharedNotes, WithoutAReadRecordNothingIsShared) {
  EXPECT_TRUE(here_->note_shown({"u", {"c1"}, "a"}, Note::kEverywhere));
  EXPECT_EQ(store_->appends, 0);
  EXPECT_EQ(here_->stats().shares.unread, 1U);
  EXPECT_FALSE(check(*here_).verdicts[0].allowed) << "this process remembers it all the same";
}

TEST_F(SharedNotes, AFullRecordGetsNoMore) {
  checker::SeenRecord seen{.known = true, .bytes = 100, .reservations = 63};
  here_->note_shown({"u", {"c1"}, "a", {}, seen.token()}, Note::kEverywhere);
  EXPECT_EQ(store_->appends, 1);
  seen.reservations = 64;
  here_->note_shown({"u", {"c1"}, "b", {}, seen.token()}, Note::kEverywhere);
  seen = {.known = true, .bytes = 12 * 1024 + 1, .reservations = 0};
  here_->note_shown({"u", {"c1"}, "c", {}, seen.token()}, Note::kEverywhere);
  EXPECT_EQ(store_->appends, 1);
  EXPECT_EQ(here_->stats().shares.no_room, 2U);
}

TEST_F(SharedNotes, ACheckSeesHowFullTheRecordIs) {
  const auto seen = [&] { return checker::SeenRecord::of(check(*here_).token); };
  EXPECT_TRUE(seen().known);
  EXPECT_EQ(seen().bytes, 0U);
  here_->hard({HardCall::kReserve, {"u", {"c2"}, "a"}});
  EXPECT_EQ(seen().bytes, 23U);
  EXPECT_EQ(seen().reservations, 1U);
  now_ += 1h;
  EXPECT_EQ(seen().reservations, 0U);
}

TEST_F(SharedNotes, NothingIsSharedWithoutTheUpdatersConfiguration) {
  store_->terms.reservation_life_max = 0s;
  here_->note_shown({"u", {"c1"}, "a", {}, check(*here_).token}, Note::kEverywhere);
  EXPECT_EQ(store_->appends, 0);
  EXPECT_EQ(here_->stats().shares.no_config, 1U);
}

TEST_F(SharedNotes, NothingIsSharedWithAClockMoreThanTenSecondsAway) {
  store_->terms.has_clock = true;
  store_->terms.clock_difference = 12s;
  here_->note_shown({"u", {"c1"}, "a", {}, check(*here_).token}, Note::kEverywhere);
  EXPECT_EQ(store_->appends, 0);
  EXPECT_EQ(here_->stats().shares.clock, 1U);
}

TEST_F(SharedNotes, AWriteThatFailsIsCounted) {
  store_->append_fails = StoreCode::kUnavailable;
  EXPECT_TRUE(here_->note_shown({"u", {"c1"}, "a", {}, check(*here_).token}, Note::kEverywhere));
  EXPECT_EQ(here_->stats().shares.failed, 1U);
}

TEST_F(SharedNotes, APageIsPickedAndSharedWithOneWrite) {
  const Candidate ranked[] = {{"c1"}, {"c2"}, {"c3"}};
  const std::string_view ids[] = {"s1", "s2"};
  const PagePicks picks = here_->pick({Promise::kShared, "u", ranked, ids});
  EXPECT_EQ(picked(picks), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(store_->appends, 1);
  EXPECT_EQ(ledger().reservations().size(), 2U);
  const std::string_view more[] = {"s3", "s4"};
  EXPECT_EQ(picked(here_->pick({Promise::kShared, "u", ranked, more})),
            (std::vector<std::size_t>{2}))
      << "it counts its own";
  EXPECT_FALSE(there_->hard({HardCall::kReserve, {"u", {"c2"}, "b"}}).allowed);
}

TEST_F(SharedNotes, APageWithBadIdsIsInvalid) {
  const Candidate ranked[] = {{"c1"}};
  const std::string_view twice[] = {"s1", "s1"};
  EXPECT_EQ(here_->pick({Promise::kShared, "u", ranked, twice}).reason, Reason::kInvalid);
  EXPECT_EQ(store_->checks, 0);
}

TEST_F(SharedNotes, APageThatIsRefusedIsCountedInEachForm) {
  const Candidate ranked[] = {{"c1"}};
  const std::string_view twice[] = {"s1", "s1"};
  here_->pick({Promise::kShared, "u", ranked, twice});
  pick_async(*there_, ranked, twice).get();
  for (const Checker* server : {here_.get(), there_.get()}) {
    EXPECT_EQ(server->stats().checks, 1U);
    EXPECT_EQ(server->stats().pending, 0U);
    EXPECT_EQ(server->stats().unjudged[Reason::kInvalid], 1U);
  }
}

TEST_F(SharedNotes, AClockThatThrowsIsAnAnswerInEachForm) {
  CheckerOptions options = patient_options();
  options.store = store_;
  options.clock = []() -> Instant { throw std::runtime_error("no time"); };
  const auto checker = Checker::create(std::move(options)).value();
  checker->set_rules(rule_set({sliding_rule("c1-daily", "c1", 1)}));
  const Candidate ranked[] = {{"c1"}};
  const std::string_view ids[] = {"s1"};
  const PagePicks blocking = checker->pick({Promise::kShared, "u", ranked, ids});
  std::promise<std::thread::id> ran_on;
  checker->pick_async({Promise::kShared, "u", ranked, ids}, {}, [&](const PagePicks& picks) {
    EXPECT_EQ(picks.reason, Reason::kOverloaded);
    EXPECT_EQ(picked(picks), picked(blocking));
    ran_on.set_value(std::this_thread::get_id());
  });
  EXPECT_NE(ran_on.get_future().get(), std::this_thread::get_id());
  EXPECT_EQ(blocking.reason, Reason::kOverloaded);
  EXPECT_EQ(picked(blocking).size(), 1U) << "it fails open, as first_allowed() does";
  EXPECT_EQ(checker->stats().checks, 2U);
  EXPECT_EQ(checker->stats().unjudged[Reason::kOverloaded], 2U);
  EXPECT_EQ(checker->stats().shown.noted, 0U);
}

TEST_F(SharedNotes, APageIsPickedAndSharedByACallbackToo) {
  std::string first = "c1";
  std::string id = "s1";
  const Candidate ranked[] = {{first}, {"c2"}, {"c3"}};
  const std::string_view ids[] = {id, "s2"};
  auto answer = pick_async(*here_, ranked, ids);
  first = id = "??";
  EXPECT_EQ(picked(answer.get()), (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(store_->appends, 1);
  EXPECT_EQ(ledger().reservations().size(), 2U);
  EXPECT_EQ(here_->stats().checks, 1U);
  EXPECT_EQ(here_->stats().candidates, 2U);
  EXPECT_FALSE(check(*here_).verdicts[0].allowed) << "it counts its own";
  EXPECT_FALSE(there_->hard({HardCall::kReserve, {"u", {"c2"}, "b"}}).allowed);
}

TEST_F(SharedNotes, ACallbackGetsWhatIsKnownWithoutReading) {
  const Candidate ranked[] = {{"c1"}, {"c3"}};
  const std::string_view twice[] = {"s1", "s1"};
  EXPECT_EQ(pick_async(*here_, ranked, twice).get().reason, Reason::kInvalid);
  EXPECT_TRUE(picked(pick_async(*here_, ranked, {}).get()).empty());
  const std::string_view ids[] = {"s1"};
  EXPECT_EQ(picked(pick_async(*here_, {&ranked[1], 1}, ids).get()), (std::vector<std::size_t>{0}));
  EXPECT_EQ(store_->checks, 0);
  EXPECT_EQ(store_->appends, 0);
}

TEST_F(SharedNotes, ACallbackGetsThePageThroughTheExecutor) {
  std::vector<std::function<void()>> tasks;
  CheckerOptions options = patient_options();
  options.executor = [&](std::function<void()> task) { tasks.push_back(std::move(task)); };
  const auto checker = server(std::move(options));
  const Candidate ranked[] = {{"c1"}};
  const std::string_view ids[] = {"s1"};
  auto answer = pick_async(*checker, ranked, ids);
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_EQ(store_->appends, 0) << "shared when it is picked";
  tasks.front()();
  EXPECT_EQ(picked(answer.get()).size(), 1U);
  EXPECT_EQ(store_->appends, 1);
}

TEST_F(SharedNotes, TheEndOfTheCheckerAnswersAPageWithoutSharingIt) {
  const auto store = std::make_shared<HoldingStore>();
  CheckerOptions options = patient_options();
  options.store = store;
  auto checker = Checker::create(std::move(options)).value();
  checker->set_rules(rule_set({sliding_rule("c1-daily", "c1", 1)}));
  const Candidate ranked[] = {{"c1"}};
  const std::string_view ids[] = {"s1"};
  auto answer = pick_async(*checker, ranked, ids);
  StoreCompletion& read = store->take();
  checker.reset();
  const PagePicks picks = answer.get();
  EXPECT_EQ(picks.reason, Reason::kShutdown);
  EXPECT_EQ(picked(picks).size(), 1U) << "it fails open";
  read.complete({.code = StoreCode::kNotFound});
}

TEST(SharedPageOfNobody, IsAnsweredAlikeInEachForm) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("two", "c1", 2)}));
  const Candidate ranked[] = {{"c1"}};
  const PageRequest page{Promise::kShared, "", ranked, {}};
  std::promise<PagePicks> given;
  world.checker->pick_async(page, {.deadline = 30s},
                            [&](PagePicks picks) { given.set_value(std::move(picks)); });
  EXPECT_EQ(given.get_future().get().reason, Reason::kNoUser);
  EXPECT_EQ(world.checker->pick(page, {.deadline = 30s}).reason, Reason::kNoUser);
}

}  // namespace shared_notes_test
}  // namespace fcap::checker_test
