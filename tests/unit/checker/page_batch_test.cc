// Many pages in one call: pick_and_reserve_batch() and pick_and_share_batch().
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "holding_store.h"
#include "reserving_store.h"

namespace fcap::checker_test {
namespace page_batch_test {

using Indices = std::vector<std::size_t>;

constexpr Candidate kRanked[] = {{"c1"}, {"c2"}, {"c3"}};
constexpr std::string_view kTwoSlots[] = {"s1", "s2"};
constexpr std::string_view kOneSlot[] = {"s3"};
constexpr std::string_view kTwice[] = {"s1", "s1"};
// The third one is not valid, and the last one is of nobody.
constexpr PageRequest kPages[] = {{"u1", kRanked, kTwoSlots},
                                  {"u2", kRanked, kOneSlot},
                                  {"u3", kRanked, kTwice},
                                  {"", kRanked, kOneSlot}};

class PageBatch : public ::testing::Test {
 protected:
  std::unique_ptr<Checker> server(std::shared_ptr<Store> store,
                                  CheckerOptions options = patient_options()) {
    options.store = std::move(store);
    options.clock = [this] { return now_; };
    auto made = Checker::create(std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().text();
    made.value()->set_rules(
        rule_set({sliding_rule("c1-daily", "c1", 1), sliding_rule("c2-daily", "c2", 1)}));
    return std::move(made).value();
  }
  std::unique_ptr<Checker> server(CheckerOptions options = patient_options()) {
    return server(store_, std::move(options));
  }

  const Instant now_ =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const std::shared_ptr<ReservingStore> store_ = std::make_shared<ReservingStore>();
};

TEST_F(PageBatch, ReservesForEachPageInItsOrder) {
  const auto checker = server();
  EXPECT_TRUE(checker->reserve("u2", {"c1"}, "before").allowed);
  const auto results = checker->pick_and_reserve_batch(kPages);
  ASSERT_EQ(results.size(), 4U);
  ASSERT_EQ(results[0].picks.size(), 2U);
  EXPECT_EQ(results[0].picks[0].candidate, 0U);
  EXPECT_EQ(results[0].picks[1].candidate, 1U);
  EXPECT_EQ(results[1].picks.at(0).candidate, 1U) << "c1 is taken";
  EXPECT_EQ(results[2].reason, ReserveReason::kInvalid);
  EXPECT_EQ(results[3].reason, ReserveReason::kNoUser);
  EXPECT_EQ(checker->stats().reserves.calls, 5U);
  const auto again = checker->pick_and_reserve_batch({kPages, 2});
  EXPECT_EQ(again[0].reason, ReserveReason::kRepeated);
  EXPECT_EQ(again[1].picks.at(0).candidate, 1U);
}

TEST_F(PageBatch, ReservesOnTheRecordsOfTheChecksBefore) {
  const auto checker = server();
  const CheckResult check = checker->check("u1", kRanked, {.keep_record = true});
  const PageRequest pages[] = {{"u1", kRanked, kTwoSlots, &check}};
  EXPECT_EQ(checker->pick_and_reserve_batch(pages).at(0).reason, ReserveReason::kDone);
  EXPECT_EQ(store_->reads, 0);
}

TEST_F(PageBatch, SharesThePicksOfEachPageInItsOrder) {
  const auto here = server();
  const auto there = server();
  EXPECT_TRUE(there->reserve("u2", {"c1"}, "before").allowed);
  const auto results = here->pick_and_share_batch(kPages);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(results[0].picked, (Indices{0, 1}));
  EXPECT_EQ(results[1].picked, (Indices{1})) << "c1 is taken";
  EXPECT_EQ(results[2].reason, Reason::kInvalid);
  EXPECT_EQ(results[3].reason, Reason::kNoUser);
  EXPECT_EQ(store_->appends, 2) << "one write per page";
  EXPECT_EQ(here->stats().checks, 4U);
  EXPECT_EQ(here->stats().pending, 0U);
  EXPECT_EQ(here->stats().reasons.invalid, 1U);
  EXPECT_EQ(here->stats().reasons.no_user, 1U);
  EXPECT_EQ(here->stats().async.callbacks, 0U);
  EXPECT_FALSE(there->reserve("u1", {"c2"}, "b").allowed);
}

TEST_F(PageBatch, NothingIsAnsweredForNothing) {
  const auto checker = server();
  EXPECT_TRUE(checker->pick_and_reserve_batch({}).empty());
  EXPECT_TRUE(checker->pick_and_share_batch({}).empty());
}

TEST_F(PageBatch, DoesNotNeedTheExecutor) {
  CheckerOptions options = patient_options();
  options.executor = [](std::function<void()>) { ADD_FAILURE() << "its thread may be the caller"; };
  const auto checker = server(std::move(options));
  EXPECT_EQ(checker->pick_and_share_batch(kPages).at(0).picked.size(), 2U);
  EXPECT_EQ(checker->pick_and_reserve_batch(kPages).at(0).picks.size(), 2U);
}

TEST_F(PageBatch, AnswersArriveFromTheStoresThreadToo) {
  CheckerOptions options = patient_options();
  options.executor = [](std::function<void()>) { ADD_FAILURE() << "its thread may be the caller"; };
  const auto store = std::make_shared<HoldingStore>();
  const auto checker = server(store, std::move(options));
  auto results = std::async(std::launch::async, [&] {
    return checker->pick_and_share_batch({kPages, 2});
  });
  StoreCompletion& first = store->take();
  store->take().complete({.code = StoreCode::kNotFound});
  first.complete({.code = StoreCode::kNotFound});
  const auto answers = results.get();
  EXPECT_EQ(answers[0].picked, (Indices{0, 1}));
  EXPECT_EQ(answers[1].picked, (Indices{0}));
  for (int write = 0; write < 2; ++write) store->take().complete({.code = StoreCode::kOk});
}

TEST_F(PageBatch, AtTheDeadlineWhatTheStoreStillHoldsIsCutOff) {
  const auto store = std::make_shared<HoldingStore>();
  const auto checker = server(store);
  const auto shared = checker->pick_and_share_batch({kPages, 2}, {.deadline = 0ms});
  ASSERT_EQ(shared.size(), 2U);
  for (const PickResult& picks : shared) EXPECT_EQ(picks.reason, Reason::kTimeout);
  EXPECT_EQ(shared[0].picked.size(), 2U) << "it fails open";
  EXPECT_EQ(checker->stats().reasons.timeouts, 2U);
  EXPECT_EQ(checker->stats().pending, 0U);
  const auto reserved = checker->pick_and_reserve_batch({kPages, 2}, {.deadline = 0ms});
  ASSERT_EQ(reserved.size(), 2U);
  for (const ReservedPicks& picks : reserved) EXPECT_EQ(picks.reason, ReserveReason::kTimeout);
  for (int read = 0; read < 4; ++read) store->take().complete({.code = StoreCode::kNotFound});
}

// The clock takes all the time there is.
TEST_F(PageBatch, WhatIsCappedForCertainIsNotPickedAfterTheDeadlineEither) {
  CheckerOptions options = patient_options();
  options.store = store_;
  options.clock = [this] {
    std::this_thread::sleep_for(2ms);
    return now_;
  };
  const auto checker = Checker::create(std::move(options)).value();
  checker->set_rules(
      rule_set({sliding_rule("c1-never", "c1", 0), sliding_rule("c2-daily", "c2", 1)}));
  const auto results = checker->pick_and_share_batch({kPages, 2}, {.deadline = 1ms});
  ASSERT_EQ(results.size(), 2U);
  for (const PickResult& picks : results) EXPECT_EQ(picks.reason, Reason::kTimeout);
  EXPECT_EQ(results[0].picked, (Indices{1, 2}));
  EXPECT_EQ(results[1].picked, (Indices{1}));
  EXPECT_EQ(store_->checks, 0);
}

TEST_F(PageBatch, PagesThatTheStoreHasNoRoomForAreOverloaded) {
  const auto store = std::make_shared<HoldingStore>();
  store->room = 0;
  const auto checker = server(store);
  const PickResult picks = checker->pick_and_share_batch({kPages, 1}).at(0);
  EXPECT_EQ(picks.reason, Reason::kOverloaded);
  EXPECT_EQ(picks.picked.size(), 2U) << "it fails open";
  EXPECT_EQ(checker->pick_and_reserve_batch({kPages, 1}).at(0).reason, ReserveReason::kOverloaded);
}

TEST_F(PageBatch, TheEndOfTheCheckerAnswersWhatIsMissing) {
  const auto store = std::make_shared<HoldingStore>();
  auto checker = server(store);
  auto shared = std::async(std::launch::async, [&asked = *checker] {
    return asked.pick_and_share_batch({kPages, 2});
  });
  auto reserved = std::async(std::launch::async, [&asked = *checker] {
    return asked.pick_and_reserve_batch({kPages, 2});
  });
  std::vector<StoreCompletion*> reads;
  for (int read = 0; read < 4; ++read) reads.push_back(&store->take());
  checker.reset();
  for (const PickResult& picks : shared.get()) EXPECT_EQ(picks.reason, Reason::kShutdown);
  for (const ReservedPicks& picks : reserved.get()) {
    EXPECT_EQ(picks.reason, ReserveReason::kShutdown);
  }
  for (StoreCompletion* const read : reads) read->complete({.code = StoreCode::kNotFound});
}

TEST_F(PageBatch, IsRefusedInsideACallback) {
  const auto checker = server();
  std::promise<void> done;
  checker->check_async("u", kRanked, kPatient, [&](const CheckResult&) {
    EXPECT_EQ(checker->pick_and_share_batch(kPages).at(0).reason, Reason::kReentrant);
    const ReservedPicks refused = checker->pick_and_reserve_batch(kPages).at(0);
    EXPECT_EQ(refused.reason, ReserveReason::kReentrant);
    EXPECT_EQ(refused.picks.size(), 2U) << "one per slot, whatever the reason";
    done.set_value();
  });
  done.get_future().wait();
  EXPECT_EQ(checker->stats().checks, 5U);
  EXPECT_EQ(checker->stats().reserves.calls, 4U);
}

}  // namespace page_batch_test
}  // namespace fcap::checker_test
