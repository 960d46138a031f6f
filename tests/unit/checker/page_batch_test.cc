// Many pages in one call: pick_batch().
#include <future>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "holding_store.h"
#include "reserving_store.h"
#include "tests/support/picked.h"

namespace fcap::checker_test {
namespace page_batch_test {

using Indices = std::vector<std::size_t>;

constexpr Candidate kRanked[] = {{"c1"}, {"c2"}, {"c3"}};
constexpr std::string_view kTwoSlots[] = {"s1", "s2"};
constexpr std::string_view kOneSlot[] = {"s3"};
constexpr std::string_view kTwice[] = {"s1", "s1"};

// The third one is not valid, and the last one is of nobody.
std::vector<PageRequest> pages(Promise promise, std::size_t count = 4) {
  const PageRequest all[] = {{promise, "u1", kRanked, kTwoSlots},
                             {promise, "u2", kRanked, kOneSlot},
                             {promise, "u3", kRanked, kTwice},
                             {promise, "", kRanked, kOneSlot}};
  return {all, all + count};
}

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
  EXPECT_TRUE(checker->hard({HardCall::kReserve, {"u2", {"c1"}, "before"}}).allowed);
  const auto results = checker->pick_batch(pages(Promise::kReserved));
  ASSERT_EQ(results.size(), 4U);
  ASSERT_EQ(results[0].picks.size(), 2U);
  EXPECT_EQ(results[0].picks[0].candidate, 0U);
  EXPECT_EQ(results[0].picks[1].candidate, 1U);
  EXPECT_EQ(results[1].picks.at(0).candidate, 1U) << "c1 is taken";
  EXPECT_EQ(results[2].reason, Reason::kInvalid);
  EXPECT_EQ(results[3].reason, Reason::kNoUser);
  EXPECT_EQ(checker->stats().hard.calls, 5U);
  const auto again = checker->pick_batch(pages(Promise::kReserved, 2));
  EXPECT_EQ(again[0].reason, Reason::kRepeated);
  EXPECT_EQ(again[1].picks.at(0).candidate, 1U);
}

TEST_F(PageBatch, ReservesOnTheRecordsOfTheChecksBefore) {
  const auto checker = server();
  const CheckResult check = checker->check("u1", kRanked, {.keep_record = true});
  const PageRequest page(Promise::kReserved, "u1", kRanked, kTwoSlots, check.token);
  EXPECT_EQ(checker->pick_batch({&page, 1}).at(0).reason, Reason::kDone);
  EXPECT_EQ(store_->reads, 0);
}

TEST_F(PageBatch, SharesThePicksOfEachPageInItsOrder) {
  const auto here = server();
  const auto there = server();
  EXPECT_TRUE(there->hard({HardCall::kReserve, {"u2", {"c1"}, "before"}}).allowed);
  const auto results = here->pick_batch(pages(Promise::kShared));
  ASSERT_EQ(results.size(), 4U);
  EXPECT_EQ(picked(results[0]), (Indices{0, 1}));
  EXPECT_EQ(picked(results[1]), (Indices{1})) << "c1 is taken";
  EXPECT_EQ(results[2].reason, Reason::kInvalid);
  EXPECT_EQ(results[3].reason, Reason::kNoUser);
  EXPECT_EQ(store_->appends, 2) << "one write per page";
  EXPECT_EQ(here->stats().checks, 4U);
  EXPECT_EQ(here->stats().pending, 0U);
  EXPECT_EQ(here->stats().unjudged[Reason::kInvalid], 1U);
  EXPECT_EQ(here->stats().unjudged[Reason::kNoUser], 1U);
  EXPECT_EQ(here->stats().async.callbacks, 0U);
  EXPECT_FALSE(there->hard({HardCall::kReserve, {"u1", {"c2"}, "b"}}).allowed);
}

TEST_F(PageBatch, NothingIsAnsweredForNothing) {
  const auto checker = server();
  EXPECT_TRUE(checker->pick_batch({}).empty());
}

TEST_F(PageBatch, TakesPagesOfBothPromises) {
  const auto checker = server();
  const PageRequest mixed[] = {{Promise::kShared, "u1", kRanked, kTwoSlots},
                               {Promise::kReserved, "u2", kRanked, kTwoSlots}};
  const auto results = checker->pick_batch(mixed);
  EXPECT_EQ(results.at(0).reason, Reason::kDone);
  EXPECT_FALSE(results.at(0).picks.at(0).expires.has_value());
  EXPECT_EQ(results.at(1).reason, Reason::kDone);
  EXPECT_TRUE(results.at(1).picks.at(0).expires.has_value());
  EXPECT_EQ(store_->appends, 1);
  EXPECT_EQ(store_->exchanges, 1);
}

TEST_F(PageBatch, DoesNotNeedTheExecutor) {
  CheckerOptions options = patient_options();
  options.executor = [](std::function<void()>) { ADD_FAILURE() << "its thread may be the caller"; };
  const auto checker = server(std::move(options));
  EXPECT_EQ(picked(checker->pick_batch(pages(Promise::kShared)).at(0)).size(), 2U);
  EXPECT_EQ(checker->pick_batch(pages(Promise::kReserved)).at(0).picks.size(), 2U);
}

TEST_F(PageBatch, AnswersArriveFromTheStoresThreadToo) {
  CheckerOptions options = patient_options();
  options.executor = [](std::function<void()>) { ADD_FAILURE() << "its thread may be the caller"; };
  const auto store = std::make_shared<HoldingStore>();
  const auto checker = server(store, std::move(options));
  auto results = std::async(std::launch::async,
                            [&] { return checker->pick_batch(pages(Promise::kShared, 2)); });
  StoreCompletion& first = store->take();
  store->take().complete({.code = StoreCode::kNotFound});
  first.complete({.code = StoreCode::kNotFound});
  const auto answers = results.get();
  EXPECT_EQ(picked(answers[0]), (Indices{0, 1}));
  EXPECT_EQ(picked(answers[1]), (Indices{0}));
  for (int write = 0; write < 2; ++write) store->take().complete({.code = StoreCode::kOk});
}

TEST_F(PageBatch, AtTheDeadlineWhatTheStoreStillHoldsIsCutOff) {
  const auto store = std::make_shared<HoldingStore>();
  const auto checker = server(store);
  const auto shared = checker->pick_batch(pages(Promise::kShared, 2), {.deadline = 0ms});
  ASSERT_EQ(shared.size(), 2U);
  for (const PagePicks& picks : shared) EXPECT_EQ(picks.reason, Reason::kTimeout);
  EXPECT_EQ(picked(shared[0]).size(), 2U) << "it fails open";
  EXPECT_EQ(checker->stats().unjudged[Reason::kTimeout], 2U);
  EXPECT_EQ(checker->stats().pending, 0U);
  const auto reserved = checker->pick_batch(pages(Promise::kReserved, 2), {.deadline = 0ms});
  ASSERT_EQ(reserved.size(), 2U);
  for (const PagePicks& picks : reserved) EXPECT_EQ(picks.reason, Reason::kTimeout);
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
  const auto results = checker->pick_batch(pages(Promise::kShared, 2), {.deadline = 1ms});
  ASSERT_EQ(results.size(), 2U);
  for (const PagePicks& picks : results) EXPECT_EQ(picks.reason, Reason::kTimeout);
  EXPECT_EQ(picked(results[0]), (Indices{1, 2}));
  EXPECT_EQ(picked(results[1]), (Indices{1}));
  EXPECT_EQ(store_->checks, 0);
}

TEST_F(PageBatch, PagesThatTheStoreHasNoRoomForAreOverloaded) {
  const auto store = std::make_shared<HoldingStore>();
  store->room = 0;
  const auto checker = server(store);
  const PagePicks picks = checker->pick_batch(pages(Promise::kShared, 1)).at(0);
  EXPECT_EQ(picks.reason, Reason::kOverloaded);
  EXPECT_EQ(picked(picks).size(), 2U) << "it fails open";
  EXPECT_EQ(checker->pick_batch(pages(Promise::kReserved, 1)).at(0).reason, Reason::kOverloaded);
}

TEST_F(PageBatch, TheEndOfTheCheckerAnswersWhatIsMissing) {
  const auto store = std::make_shared<HoldingStore>();
  auto checker = server(store);
  auto shared = std::async(std::launch::async, [&asked = *checker] {
    return asked.pick_batch(pages(Promise::kShared, 2));
  });
  auto reserved = std::async(std::launch::async, [&asked = *checker] {
    return asked.pick_batch(pages(Promise::kReserved, 2));
  });
  std::vector<StoreCompletion*> reads;
  for (int read = 0; read < 4; ++read) reads.push_back(&store->take());
  checker.reset();
  for (const PagePicks& picks : shared.get()) EXPECT_EQ(picks.reason, Reason::kShutdown);
  for (const PagePicks& picks : reserved.get()) {
    EXPECT_EQ(picks.reason, Reason::kShutdown);
  }
  for (StoreCompletion* const read : reads) read->complete({.code = StoreCode::kNotFound});
}

TEST_F(PageBatch, IsRefusedInsideACallback) {
  const auto checker = server();
  std::promise<void> done;
  checker->check_async("u", kRanked, kPatient, [&](const CheckResult&) {
    EXPECT_EQ(checker->pick_batch(pages(Promise::kShared)).at(0).reason, Reason::kReentrant);
    const PagePicks refused = checker->pick_batch(pages(Promise::kReserved)).at(0);
    EXPECT_EQ(refused.reason, Reason::kReentrant);
    EXPECT_EQ(refused.picks.size(), 2U) << "one per slot, whatever the reason";
    done.set_value();
  });
  done.get_future().wait();
  EXPECT_EQ(checker->stats().checks, 5U);
  EXPECT_EQ(checker->stats().hard.calls, 4U);
}

}  // namespace page_batch_test
}  // namespace fcap::checker_test
