// Hard calls that answer by a callback.
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "holding_store.h"
#include "reserving_store.h"

namespace fcap::checker_test {
namespace reserve_async_test {

Instant wall_now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

class ReserveAsync : public ::testing::Test {
 protected:
  void make(CheckerOptions options) {
    options.clock = wall_now;
    auto made = Checker::create(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().text();
    checker_ = std::move(made).value();
    checker_->set_rules(
        rule_set({sliding_rule("c1-daily", "c1", 1), sliding_rule("c2-daily", "c2", 1)}));
  }
  void make(std::shared_ptr<Store> store) {
    CheckerOptions options = patient_options();
    options.store = std::move(store);
    make(std::move(options));
  }
  // A callback and what it will be given.
  static std::pair<Checker::HardCallback, std::future<HardResult>> expected() {
    std::promise<HardResult> promise;
    auto answer = promise.get_future();
    return {[promise = std::move(promise)](HardResult result) mutable {
              promise.set_value(std::move(result));
            },
            std::move(answer)};
  }
  std::future<HardResult> start(std::string_view id) {
    auto [callback, answer] = expected();
    checker_->hard_async({HardCall::kReserve, {"u", {"c1"}, id}}, {}, std::move(callback));
    return std::move(answer);
  }

  std::unique_ptr<Checker> checker_;
};

TEST_F(ReserveAsync, EachFormAnswersAsItsBlockingOne) {
  make(std::make_shared<ReservingStore>());
  EXPECT_TRUE(start("a").get().allowed);
  EXPECT_EQ(start("a").get().reason, Reason::kRepeated);
  EXPECT_EQ(start("b").get().reason, Reason::kCapped);
  auto [released, release] = expected();
  checker_->hard_async({HardCall::kRelease, {"u", {"c1"}, "a"}}, {}, std::move(released));
  EXPECT_TRUE(release.get().allowed);
  auto [recorded, record] = expected();
  checker_->hard_async({HardCall::kRecord, {"u", {"c1"}, "c"}}, {}, std::move(recorded));
  EXPECT_TRUE(record.get().allowed);
  std::promise<PagePicks> promise;
  const Candidate ranked[] = {{"c1"}, {"c2"}};
  const std::string_view ids[] = {"s1"};
  checker_->pick_async({Promise::kReserved, "u", ranked, ids}, {.deadline = 30s},
                       [&](PagePicks picks) { promise.set_value(std::move(picks)); });
  EXPECT_EQ(promise.get_future().get().picks[0].candidate, 1U);
}

TEST_F(ReserveAsync, NeverCallsBackInsideTheCall) {
  make(std::make_shared<ReservingStore>());
  std::promise<std::thread::id> promise;
  checker_->hard_async({HardCall::kReserve, {"", {"c1"}, "a"}}, {}, [&](const HardResult& result) {
    EXPECT_EQ(result.reason, Reason::kNoUser);
    promise.set_value(std::this_thread::get_id());
  });
  EXPECT_NE(promise.get_future().get(), std::this_thread::get_id());
}

TEST_F(ReserveAsync, TheArgumentsMayGoAsSoonAsItHasReturned) {
  const auto store = std::make_shared<HoldingStore>();
  make(store);
  auto [callback, answer] = expected();
  {
    std::string user = "user-with-a-long-name";
    std::string campaign = "c1";
    std::string id = "an-id-that-is-long-enough-to-be-on-the-heap";
    std::string segment = "segment";
    const std::string_view segments[] = {segment};
    checker_->hard_async({HardCall::kReserve, {user, {campaign}, id}}, {.segments = segments},
                         std::move(callback));
    for (std::string* text : {&user, &campaign, &id, &segment}) text->assign(text->size(), '?');
  }
  store->take().complete({.code = StoreCode::kNotFound});
  store->take().complete({.code = StoreCode::kConflict});
  store->take().complete({.code = StoreCode::kNotFound});
  store->take().complete({.code = StoreCode::kOk});
  EXPECT_TRUE(answer.get().allowed);
}

TEST_F(ReserveAsync, AnswersThroughTheExecutor) {
  std::vector<std::function<void()>> tasks;
  CheckerOptions options = patient_options();
  options.store = std::make_shared<ReservingStore>();
  options.executor = [&](std::function<void()> task) { tasks.push_back(std::move(task)); };
  make(std::move(options));
  auto answer = start("a");
  ASSERT_EQ(tasks.size(), 1U);
  EXPECT_NE(answer.wait_for(0s), std::future_status::ready);
  tasks.front()();
  tasks.front()();  // a host that runs a task twice
  EXPECT_TRUE(answer.get().allowed);
}

TEST_F(ReserveAsync, TheEndOfTheCheckerAnswersWhatTheStoreStillHolds) {
  const auto store = std::make_shared<HoldingStore>();
  make(store);
  auto reading = start("a");
  StoreCompletion& read = store->take();
  auto exchanging = start("b");
  store->take().complete({.code = StoreCode::kNotFound});
  StoreCompletion& exchange = store->take();
  checker_.reset();
  EXPECT_EQ(reading.get().reason, Reason::kShutdown);
  const HardResult result = exchanging.get();
  EXPECT_EQ(result.reason, Reason::kShutdown);
  EXPECT_TRUE(result.unknown) << "it may have been written";
  read.complete({.code = StoreCode::kNotFound});
  exchange.complete({.code = StoreCode::kOk});
}

TEST_F(ReserveAsync, TheEndOfTheCheckerAnswersWhatAnExecutorStillHolds) {
  std::vector<std::function<void()>> tasks;
  CheckerOptions options = patient_options();
  options.store = std::make_shared<ReservingStore>();
  options.executor = [&](std::function<void()> task) { tasks.push_back(std::move(task)); };
  make(std::move(options));
  auto answer = start("a");
  checker_.reset();
  EXPECT_TRUE(answer.get().allowed);
  tasks.front()();
}

// The Checker's own thread is kept busy until the executor's task has given the answer.
TEST_F(ReserveAsync, AnExecutorMayTakeATaskAndThrow) {
  std::vector<std::function<void()>> tasks;
  bool takes = false;
  CheckerOptions options = patient_options();
  options.store = std::make_shared<ReservingStore>();
  options.redis.io_threads = 1;
  options.executor = [&](std::function<void()> task) {
    if (takes) tasks.push_back(std::move(task));
    throw std::runtime_error("full");
  };
  make(std::move(options));
  std::promise<void> begun;
  std::promise<void> go_on;
  checker_->hard_async({HardCall::kReserve, {"v", {"c1"}, "a"}}, {}, [&](const HardResult&) {
    begun.set_value();
    go_on.get_future().wait();
  });
  begun.get_future().wait();
  takes = true;
  auto answer = start("a");
  ASSERT_EQ(tasks.size(), 1U);
  tasks.front()();
  tasks.clear();
  EXPECT_TRUE(answer.get().allowed);
  go_on.set_value();
  checker_.reset();
}

TEST_F(ReserveAsync, ACallbackMayStartTheNextOne) {
  make(std::make_shared<ReservingStore>());
  std::promise<HardResult> promise;
  checker_->hard_async({HardCall::kReserve, {"u", {"c1"}, "a"}}, {}, [&](const HardResult&) {
    checker_->hard_async({HardCall::kReserve, {"u", {"c1"}, "b"}}, {},
                         [&](HardResult result) { promise.set_value(std::move(result)); });
  });
  EXPECT_EQ(promise.get_future().get().reason, Reason::kCapped);
}

}  // namespace reserve_async_test
}  // namespace fcap::checker_test
