// Many reservations in one call.
#include <atomic>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "holding_store.h"
#include "reserving_store.h"
#include "tests/support/asking.h"

namespace fcap::checker_test {
namespace reserve_batch_test {

using Results = std::vector<HardResult>;

// Answers the first read on a thread of its own while the second one, which it holds, is asked for.
// The first exchange fails, but not before `may_fail`.
class StoreThatDrives final : public Store {
 public:
  ~StoreThatDrives() override {
    if (thread_.joinable()) thread_.join();
  }
  void get(std::string_view, Deadline, StoreCompletion& done) noexcept override {
    const int before = reads.fetch_add(1);
    if (before == 0) {
      first_ = &done;
    } else if (before == 1) {
      held = &done;
      thread_ = std::thread([this] { first_->complete({.code = StoreCode::kNotFound}); });
      exchanging_.get_future().wait();
    } else {
      done.complete({.code = StoreCode::kNotFound});
    }
  }
  void append(std::string_view, std::string_view, Instant, Deadline,
              StoreCompletion& done) noexcept override {
    done.complete({.code = StoreCode::kUnavailable});
  }
  void compare_and_set(const CompareAndSet&, Deadline, StoreCompletion& done) noexcept override {
    if (exchanges.fetch_add(1) > 0) return done.complete({.code = StoreCode::kOk});
    exchanging_.set_value();
    while (!may_fail()) std::this_thread::yield();
    done.complete({.code = StoreCode::kConflict});
  }
  [[nodiscard]] WriteTerms write_terms() const noexcept override {
    return {.reservation_life_max = kDefaultReservationLifeMax};
  }

  std::function<bool()> may_fail;
  StoreCompletion* held = nullptr;
  std::atomic<int> reads{0};
  std::atomic<int> exchanges{0};

 private:
  StoreCompletion* first_ = nullptr;
  std::promise<void> exchanging_;
  std::thread thread_;
};

class ReserveBatch : public ::testing::Test {
 protected:
  void make(CheckerOptions options) {
    options.clock = [this] {
      clock_reads_.fetch_add(1);
      return now_;
    };
    options.deadline = 30s;
    auto made = Checker::create(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    checker_->set_rules(rule_set({sliding_rule("c1-daily", "c1", 1)}));
  }
  void make(std::shared_ptr<Store> store) {
    CheckerOptions options = patient_options();
    options.store = std::move(store);
    make(std::move(options));
  }

  const Instant now_ =
      std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  std::atomic<int> clock_reads_{0};
  std::unique_ptr<Checker> checker_;
};

TEST_F(ReserveBatch, AnswersInTheOrderOfTheRequests) {
  make(std::make_shared<ReservingStore>());
  EXPECT_TRUE(checker_->hard({HardCall::kReserve, {"full", {"c1"}, "before"}}).allowed);
  const Impression requests[] = {
      {"u1", {"c1"}, "a"}, {"full", {"c1"}, "b"}, {"", {"c1"}, "c"}, {"u2", {"c1"}, ""}};
  const Results results = checker_->hard_batch(asking(HardCall::kReserve, requests));
  ASSERT_EQ(results.size(), 4U);
  EXPECT_TRUE(results[0].allowed);
  EXPECT_EQ(results[0].time, now_);
  EXPECT_EQ(results[1].reason, Reason::kCapped);
  EXPECT_EQ(results[2].reason, Reason::kNoUser);
  EXPECT_EQ(results[3].reason, Reason::kInvalid);
  EXPECT_EQ(checker_->stats().hard.calls, 5U);
}

TEST_F(ReserveBatch, OfOneUserAsManyPassAsTheLimitAllows) {
  make(std::make_shared<ReservingStore>());
  const Impression requests[] = {{"u", {"c1"}, "a"}, {"u", {"c1"}, "b"}, {"u", {"c1"}, "a"}};
  const Results results = checker_->hard_batch(asking(HardCall::kReserve, requests));
  EXPECT_TRUE(results[0].allowed);
  EXPECT_EQ(results[1].reason, Reason::kCapped);
  EXPECT_EQ(results[2].reason, Reason::kRepeated);
}

TEST_F(ReserveBatch, NothingIsAnsweredForNothing) {
  make(std::make_shared<ReservingStore>());
  EXPECT_TRUE(checker_->hard_batch({}).empty());
}

TEST_F(ReserveBatch, BeginsWithTheRecordsOfTheChecksBefore) {
  const auto store = std::make_shared<ReservingStore>();
  make(store);
  const Candidate candidates[] = {{"c1"}};
  const CheckResult first = checker_->check("u1", candidates, {.keep_record = true});
  const CheckResult second = checker_->check("u2", candidates, {.keep_record = true});
  const Impression requests[] = {{"u1", {"c1"}, "a", {}, first.token},
                                 {"u2", {"c1"}, "b", {}, second.token}};
  for (const HardResult& result : checker_->hard_batch(asking(HardCall::kReserve, requests))) {
    EXPECT_TRUE(result.allowed);
  }
  EXPECT_EQ(store->reads, 0);
}

// Three users' calls are at their second step when the first one's is answered.
TEST_F(ReserveBatch, NoneWaitsForAnother) {
  const auto store = std::make_shared<HoldingStore>();
  make(store);
  const Impression requests[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}, {"u3", {"c1"}, "c"}};
  auto results = std::async(std::launch::async, [&] {
    return checker_->hard_batch(asking(HardCall::kReserve, requests));
  });
  StoreCompletion& slow = store->take();
  for (int other = 0; other < 2; ++other) store->take().complete({.code = StoreCode::kNotFound});
  for (int other = 0; other < 2; ++other) store->take().complete({.code = StoreCode::kOk});
  slow.complete({.code = StoreCode::kTimeout});
  const Results answers = results.get();
  EXPECT_EQ(answers[0].reason, Reason::kTimeout);
  EXPECT_TRUE(answers[1].allowed);
  EXPECT_TRUE(answers[2].allowed);
}

TEST_F(ReserveBatch, DoesNotNeedTheExecutor) {
  CheckerOptions options = patient_options();
  options.store = std::make_shared<ReservingStore>();
  options.executor = [](std::function<void()>) { ADD_FAILURE() << "its thread may be the caller"; };
  make(std::move(options));
  const Impression requests[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}};
  for (const HardResult& result : checker_->hard_batch(asking(HardCall::kReserve, requests))) {
    EXPECT_TRUE(result.allowed);
  }
}

TEST_F(ReserveBatch, TheEndOfTheCheckerAnswersWhatIsMissing) {
  const auto store = std::make_shared<HoldingStore>();
  make(store);
  const Impression requests[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}};
  auto results = std::async(std::launch::async, [&] {
    return checker_->hard_batch(asking(HardCall::kReserve, requests));
  });
  StoreCompletion& first = store->take();
  StoreCompletion& second = store->take();
  checker_.reset();
  for (const HardResult& result : results.get()) {
    EXPECT_EQ(result.reason, Reason::kShutdown);
  }
  first.complete({.code = StoreCode::kNotFound});
  second.complete({.code = StoreCode::kNotFound});
}

// The first one's first step is an exchange, because its record is known.
TEST_F(ReserveBatch, AtTheDeadlineWhatTheStoreStillHoldsIsCutOff) {
  const auto store = std::make_shared<HoldingStore>();
  make(store);
  auto checked = std::async(std::launch::async, [&] {
    const Candidate candidates[] = {{"c1"}};
    return checker_->check("u1", candidates, {.deadline = 30s, .keep_record = true});
  });
  store->take().complete({.code = StoreCode::kNotFound});
  const CheckResult check = checked.get();
  const Impression requests[] = {{"u1", {"c1"}, "a", {}, check.token}, {"u2", {"c1"}, "b"}};
  auto results = std::async(std::launch::async, [&] {
    return checker_->hard_batch(asking(HardCall::kReserve, requests), {.deadline = 0ms});
  });
  StoreCompletion& exchange = store->take();
  StoreCompletion& read = store->take();
  const bool answered = results.wait_for(30s) == std::future_status::ready;
  EXPECT_TRUE(answered) << "it waits for the store";
  exchange.complete({.code = StoreCode::kOk});
  read.complete({.code = StoreCode::kTimeout});
  if (!answered) return;
  const Results answers = results.get();
  EXPECT_EQ(answers[0].reason, Reason::kTimeout);
  EXPECT_TRUE(answers[0].unknown) << "it may have been written";
  EXPECT_EQ(answers[1].reason, Reason::kTimeout);
  EXPECT_FALSE(answers[1].unknown);
  const CheckerStats::Hard hard = checker_->stats().hard;
  EXPECT_EQ(hard.ended[Reason::kTimeout], 2U);
  EXPECT_EQ(hard.unknown, 1U);
}

// The second request is cut off after the first one, whose exchange is still under way by then.
TEST_F(ReserveBatch, NothingMoreIsAskedForWhatIsDrivenAtTheDeadline) {
  const auto store = std::make_shared<StoreThatDrives>();
  make(store);
  store->may_fail = [this] { return checker_->stats().hard.ended[Reason::kTimeout] > 0; };
  const Impression requests[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}};
  const Results results =
      checker_->hard_batch(asking(HardCall::kReserve, requests), {.deadline = 0ms});
  store->held->complete({.code = StoreCode::kNotFound});
  EXPECT_EQ(results[0].reason, Reason::kTimeout);
  EXPECT_FALSE(results[0].unknown) << "it is known that the only exchange has failed";
  EXPECT_EQ(results[1].reason, Reason::kTimeout);
  EXPECT_EQ(store->reads, 2);
  EXPECT_EQ(store->exchanges, 1);
}

TEST_F(ReserveBatch, IsRefusedInsideACallback) {
  make(std::make_shared<ReservingStore>());
  std::promise<Results> answers;
  checker_->hard_async({HardCall::kReserve, {"u", {"c1"}, "a"}}, {}, [&](const HardResult&) {
    const Impression requests[] = {{"u1", {"c1"}, "b"}, {"u2", {"c1"}, "c"}};
    answers.set_value(checker_->hard_batch(asking(HardCall::kReserve, requests)));
  });
  for (const HardResult& result : answers.get_future().get()) {
    EXPECT_EQ(result.reason, Reason::kReentrant);
  }
  const CheckerStats::Hard hard = checker_->stats().hard;
  EXPECT_EQ(hard.calls, 3U) << "those that are refused are calls too";
  EXPECT_EQ(hard.ended[Reason::kReentrant], 2U);
}

// The first request's exchange takes all the time there is.
TEST_F(ReserveBatch, WhatComesAfterTheDeadlineIsNotAskedForAnyMore) {
  const auto store = std::make_shared<ReservingStore>();
  make(store);
  store->before_exchange = [] { std::this_thread::sleep_for(3ms); };
  const Impression requests[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}};
  const Results results =
      checker_->hard_batch(asking(HardCall::kReserve, requests), {.deadline = 1ms});
  EXPECT_EQ(results[1].reason, Reason::kTimeout);
  EXPECT_FALSE(results[1].unknown) << "nothing was sent";
  EXPECT_TRUE(store->record("u2").empty());
}

TEST_F(ReserveBatch, WhatComesAfterTheDeadlineIsNotEvenPrepared) {
  const auto store = std::make_shared<ReservingStore>();
  make(store);
  std::optional<int> clock_reads;
  store->before_exchange = [&] {
    clock_reads = clock_reads_;
    std::this_thread::sleep_for(3ms);
  };
  // A stall of the machine may use up the time before the first one's exchange.
  for (int call = 0; !clock_reads; ++call) {
    const std::string user = "u" + std::to_string(call);
    const Impression requests[] = {{user, {"c1"}, "a"}, {"v", {"c1"}, "b"}, {"w", {"c1"}, "c"}};
    const Results results =
        checker_->hard_batch(asking(HardCall::kReserve, requests), {.deadline = 1ms});
    for (const std::size_t late : {1U, 2U}) {
      EXPECT_EQ(results[late].reason, Reason::kTimeout);
    }
  }
  EXPECT_EQ(clock_reads_, *clock_reads) << "each request that is prepared reads the clock";
}

TEST_F(ReserveBatch, RequestsThatTheStoreHasNoRoomForAreOverloaded) {
  const auto store = std::make_shared<HoldingStore>();
  store->room = 2;
  make(store);
  const Impression requests[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}, {"u3", {"c1"}, "c"}};
  auto results = std::async(std::launch::async, [&] {
    return checker_->hard_batch(asking(HardCall::kReserve, requests));
  });
  while (checker_->stats().hard.ended[Reason::kOverloaded] == 0) std::this_thread::yield();
  StoreCompletion& first = store->take();
  StoreCompletion& second = store->take();
  for (StoreCompletion* const read : {&first, &second}) {
    read->complete({.code = StoreCode::kNotFound});
    store->take().complete({.code = StoreCode::kOk});
  }
  const Results answers = results.get();
  EXPECT_TRUE(answers[0].allowed);
  EXPECT_TRUE(answers[1].allowed);
  EXPECT_EQ(answers[2].reason, Reason::kOverloaded);
  EXPECT_FALSE(answers[2].unknown) << "nothing was written";
}

TEST_F(ReserveBatch, RecordsAndReleasesForManyUsersToo) {
  make(std::make_shared<ReservingStore>());
  const Impression first[] = {{"u1", {"c1"}, "a"}, {"u2", {"c1"}, "b"}, {"", {"c1"}, "c"}};
  const Results recorded = checker_->hard_batch(asking(HardCall::kRecord, first));
  ASSERT_EQ(recorded.size(), 3U);
  EXPECT_TRUE(recorded[0].allowed);
  EXPECT_FALSE(recorded[0].expires) << "an event, not a reservation";
  EXPECT_TRUE(recorded[1].allowed);
  EXPECT_EQ(recorded[2].reason, Reason::kNoUser);
  const Impression second[] = {{"u1", {"c1"}, "d"}, {"u3", {"c1"}, "e"}};
  EXPECT_EQ(checker_->hard_batch(asking(HardCall::kReserve, second))[0].reason, Reason::kCapped);
  const Results released = checker_->hard_batch(asking(HardCall::kRelease, {&second[1], 1}));
  ASSERT_EQ(released.size(), 1U);
  EXPECT_TRUE(released[0].allowed);
  EXPECT_EQ(checker_->hard({HardCall::kReserve, {"u3", {"c1"}, "e"}}).reason, Reason::kReleased);
  EXPECT_TRUE(checker_->hard({HardCall::kReserve, {"u3", {"c1"}, "f"}}).allowed);
}

TEST_F(ReserveBatch, AReleaseThatIsCutOffIsUnknown) {
  const auto store = std::make_shared<HoldingStore>();
  make(store);
  const Impression requests[] = {{"u1", {"c1"}, "a"}};
  const Results results =
      checker_->hard_batch(asking(HardCall::kRelease, requests), {.deadline = 0ms});
  EXPECT_EQ(results.at(0).reason, Reason::kTimeout);
  EXPECT_TRUE(results.at(0).unknown);
  store->take().complete({.code = StoreCode::kOk});
}

TEST_F(ReserveBatch, WithNoTimeAtAllAStoreThatAnswersAtOnceIsStillAsked) {
  make(std::make_shared<ReservingStore>());
  const Impression requests[] = {{"u1", {"c1"}, "a"}};
  EXPECT_TRUE(
      checker_->hard_batch(asking(HardCall::kReserve, requests), {.deadline = 0ms})[0].allowed);
}

}  // namespace reserve_batch_test
}  // namespace fcap::checker_test
