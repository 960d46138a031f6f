// Many reservations in one call.
#include <future>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "holding_store.h"
#include "reserving_store.h"

namespace fcap::checker_test {
namespace {

using Results = std::vector<ReserveResult>;

class ReserveBatch : public ::testing::Test {
 protected:
  void make(CheckerOptions options) {
    options.clock = [this] { return now_; };
    auto made = Checker::create(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    checker_->set_rules(rule_set({sliding_rule("c1-daily", "c1", 1)}));
  }
  void make(std::shared_ptr<Store> store) {
    CheckerOptions options;
    options.store = std::move(store);
    make(std::move(options));
  }

  const Instant now_ =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  std::unique_ptr<Checker> checker_;
};

TEST_F(ReserveBatch, AnswersInTheOrderOfTheRequests) {
  make(std::make_shared<ReservingStore>());
  EXPECT_TRUE(checker_->reserve("full", {"c1"}, "before").allowed);
  const ReserveRequest requests[] = {
      {"u1", {"c1"}, "a"}, {"full", {"c1"}, "b"}, {"", {"c1"}, "c"}, {"u2", {"c1"}, ""}};
  const Results results = checker_->reserve_batch(requests);
  ASSERT_EQ(results.size(), 4U);
  EXPECT_TRUE(results[0].allowed);
  EXPECT_EQ(results[0].time, now_);
  EXPECT_EQ(results[1].reason, ReserveReason::kCapped);
  EXPECT_EQ(results[2].reason, ReserveReason::kNoUser);
  EXPECT_EQ(results[3].reason, ReserveReason::kInvalid);
  EXPECT_EQ(checker_->stats().reserves.calls, 5U);
}

TEST_F(ReserveBatch, OfOneUserAsManyPassAsTheLimitAllows) {
  make(std::make_shared<ReservingStore>());
  const ReserveRequest requests[] = {{"u", {"c1"}, "a"}, {"u", {"c1"}, "b"}, {"u", {"c1"}, "a"}};
  const Results results = checker_->reserve_batch(requests);
  EXPECT_TRUE(results[0].allowed);
  EXPECT_EQ(results[1].reason, ReserveReason::kCapped);
  EXPECT_EQ(results[2].reason, ReserveReason::kRepeated);
}

TEST_F(ReserveBatch, NothingIsAnsweredForNothing) {
  make(std::make_shared<ReservingStore>());
  EXPECT_TRUE(checker_->reserve_batch({}).empty());
}

TEST_F(ReserveBatch, BeginsWithTheRecordsOfTheChecksBefore) {
  const auto store = std::make_shared<ReservingStore>();
  make(store);
  const Candidate candidates[] = {{"c1"}};
  const CheckResult first = checker_->check("u1", candidates, {.keep_record = true});
  const CheckResult second = checker_->check("u2", candidates, {.keep_record = true});
  const ReserveRequest requests[] = {{"u1", {"c1"}, "a", &first}, {"u2", {"c1"}, "b", &second}};
  for (const ReserveResult& result : checker_->reserve_batch(requests)) {
    EXPECT_TRUE(result.allowed);
  }
  EXPECT_EQ(store->reads, 0);
}

// Three users' calls are at their second step when the first one's is answered.
TEST_F(ReserveBatch, NoneWaitsForAnother) {
  const auto store = std::make_shared<HoldingStore>();
  make(store);
  const ReserveRequest requests[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}, {"u3", {"c1"}, "c"}};
  auto results = std::async(std::launch::async, [&] { return checker_->reserve_batch(requests); });
  StoreCompletion& slow = store->take();
  for (int other = 0; other < 2; ++other) store->take().complete({.code = StoreCode::kNotFound});
  for (int other = 0; other < 2; ++other) store->take().complete({.code = StoreCode::kOk});
  slow.complete({.code = StoreCode::kTimeout});
  const Results answers = results.get();
  EXPECT_EQ(answers[0].reason, ReserveReason::kTimeout);
  EXPECT_TRUE(answers[1].allowed);
  EXPECT_TRUE(answers[2].allowed);
}

TEST_F(ReserveBatch, DoesNotNeedTheExecutor) {
  CheckerOptions options;
  options.store = std::make_shared<ReservingStore>();
  options.executor = [](std::function<void()>) { ADD_FAILURE() << "its thread may be the caller"; };
  make(std::move(options));
  const ReserveRequest requests[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}};
  for (const ReserveResult& result : checker_->reserve_batch(requests)) {
    EXPECT_TRUE(result.allowed);
  }
}

TEST_F(ReserveBatch, TheEndOfTheCheckerAnswersWhatIsMissing) {
  const auto store = std::make_shared<HoldingStore>();
  make(store);
  const ReserveRequest requests[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}};
  auto results = std::async(std::launch::async, [&] { return checker_->reserve_batch(requests); });
  StoreCompletion& first = store->take();
  StoreCompletion& second = store->take();
  checker_.reset();
  for (const ReserveResult& result : results.get()) {
    EXPECT_EQ(result.reason, ReserveReason::kShutdown);
  }
  first.complete({.code = StoreCode::kNotFound});
  second.complete({.code = StoreCode::kNotFound});
}

TEST_F(ReserveBatch, IsRefusedInsideACallback) {
  make(std::make_shared<ReservingStore>());
  std::promise<Results> answers;
  checker_->reserve_async("u", {"c1"}, "a", {}, [&](const ReserveResult&) {
    const ReserveRequest requests[] = {{"u1", {"c1"}, "b"}};
    answers.set_value(checker_->reserve_batch(requests));
  });
  EXPECT_EQ(answers.get_future().get().at(0).reason, ReserveReason::kReentrant);
}

}  // namespace
}  // namespace fcap::checker_test
