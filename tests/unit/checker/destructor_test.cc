#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "holding_store.h"
#include "tests/support/asking.h"
#include "tests/support/picked.h"

namespace fcap::checker_test {
namespace destructor_test {

constexpr Candidate kCandidates[] = {{"c1"}, {"c2"}};

// An event-loop host: each answer starts the next check, until the Checker shuts down.
class Chain {
 public:
  explicit Chain(Checker& checker) : checker_(checker) {}

  void start() {
    checker_.check_async("u", kCandidates, kPatient, [this](const CheckResult& result) {
      ++answers_;
      EXPECT_EQ(result.verdicts.size(), 2U);
      if (result.reason == Reason::kShutdown) {
        ended_ = true;
      } else {
        start();
      }
    });
  }

  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] int answers() const { return answers_; }

 private:
  Checker& checker_;
  std::atomic<int> answers_{0};
  std::atomic<bool> ended_{false};
};

CheckerOptions memory_options() {
  CheckerOptions options = patient_options();
  options.store = make_memory_store();
  // Look-ups that take a while, so that calls are often between their first look and the store.
  for (int i = 0; i < 200; ++i) options.null_user_ids.push_back("null-" + std::to_string(i));
  return options;
}

TEST(CheckerDestructor, CallbacksMayStartTheNextCheckWhileItRuns) {
  constexpr int kDestructions = 1'000;
  int answers = 0;
  const std::shared_ptr<const RuleSet> rules = rule_set({sliding_rule("r1", "c1", 1)});
  for (int round = 0; round < kDestructions; ++round) {
    Result<std::unique_ptr<Checker>> made = Checker::create(memory_options());
    ASSERT_TRUE(made.ok()) << made.status().text();
    std::unique_ptr<Checker> checker = std::move(made).value();
    checker->set_rules(rules);
    Chain first(*checker);
    Chain second(*checker);
    first.start();
    second.start();
    // At another point of the chains' rounds each time.
    for (int i = 0; i < round % 7; ++i) std::this_thread::yield();
    checker.reset();
    ASSERT_TRUE(first.ended());
    ASSERT_TRUE(second.ended());
    answers += first.answers() + second.answers();
  }
  EXPECT_GT(answers, kDestructions * 2);
}

// How many destructions the tests below try that depend on where the threads just are.
constexpr int kTries = 50;

std::unique_ptr<Checker> make_checker(CheckerOptions options) {
  Result<std::unique_ptr<Checker>> made = Checker::create(std::move(options));
  EXPECT_TRUE(made.ok()) << made.status().text();
  std::unique_ptr<Checker> checker = std::move(made).value();
  checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  return checker;
}

void wait_for(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

// Sets the flag when it asks for the time, as every request does.
std::unique_ptr<Checker> checker_that_tells(std::atomic<bool>& begun) {
  CheckerOptions options = patient_options();
  options.store = make_memory_store();
  options.clock = [&begun] {
    begun = true;
    return kNow;
  };
  return make_checker(std::move(options));
}

// A batch's own thread is between two requests again and again.
TEST(CheckerDestructor, WaitsForABatchThatIsBetweenTwoRequests) {
  for (int round = 0; round < kTries; ++round) {
    std::atomic<bool> begun{false};
    std::unique_ptr<Checker> checker = checker_that_tells(begun);
    std::vector<Impression> requests(1'000);
    requests.front() = {"u", {"c1"}, "a"};
    std::vector<HardResult> results;
    std::thread host([&, &asked = *checker] {
      results = asked.hard_batch(asking(HardCall::kReserve, requests), {.deadline = 30s});
    });
    wait_for(begun);
    checker.reset();
    host.join();
    ASSERT_EQ(results.size(), requests.size());
    for (std::size_t i = 1; i < results.size(); ++i) {
      ASSERT_TRUE(results[i].reason == Reason::kNoUser || results[i].reason == Reason::kShutdown);
    }
  }
}

TEST(CheckerDestructor, WaitsForABatchThatIsBetweenTwoPages) {
  const Candidate c1{"c1"};
  const std::string_view ids[] = {"a"};
  for (int round = 0; round < kTries; ++round) {
    std::atomic<bool> begun{false};
    std::unique_ptr<Checker> checker = checker_that_tells(begun);
    const Promise promise = round % 2 == 0 ? Promise::kShared : Promise::kReserved;
    std::vector<PageRequest> pages(500, PageRequest(promise, "", {}, {}));
    pages.front() = {promise, "u", {&c1, 1}, ids};
    std::size_t answers = 0;
    std::thread asking(
        [&, &asked = *checker] { answers = asked.pick_batch(pages, {.deadline = 30s}).size(); });
    wait_for(begun);
    checker.reset();
    asking.join();
    ASSERT_EQ(answers, pages.size());
  }
}

TEST(CheckerDestructor, WaitsForAPageThatIsBeingShared) {
  std::vector<std::string> names;
  for (int i = 0; i < 64; ++i) names.push_back("id-" + std::to_string(i));
  const std::vector<std::string_view> ids(names.begin(), names.end());
  std::vector<Candidate> ranked;
  for (const std::string& name : names) ranked.push_back({name});
  ranked.front().campaign = "c1";
  for (int round = 0; round < kTries; ++round) {
    const auto store = std::make_shared<ScriptedStore>();
    CheckerOptions options = patient_options();
    options.store = store;
    std::unique_ptr<Checker> checker = make_checker(std::move(options));
    PagePicks page;
    std::thread host([&, &asked = *checker] {
      page = asked.pick({Promise::kShared, "u", ranked, ids}, {.deadline = 30s});
    });
    const auto held = store->wait_for_held(1);
    store->answer(held.front(), StoreCode::kNotFound);
    checker.reset();
    host.join();
    ASSERT_EQ(picked(page).size(), ids.size());
  }
}

// What the Checker's own store still has when it ends becomes kUnavailable.
TEST(CheckerDestructor, AHardCallWhoseStoreEndsAnswersShutdown) {
  const Candidate c1{"c1"};
  const auto store = std::make_shared<HoldingStore>();
  CheckerOptions options = patient_options();
  options.store = store;
  std::unique_ptr<Checker> checker = make_checker(std::move(options));
  Checker& asked = *checker;
  const HardOptions patient{.deadline = 30s};
  auto reserved = std::async(std::launch::async, [&] {
    return asked.hard({HardCall::kReserve, {"u", c1, "a"}}, patient);
  });
  StoreCompletion& read = store->take();
  auto released = std::async(std::launch::async, [&] {
    return asked.hard({HardCall::kRelease, {"u", c1, "b"}}, patient);
  });
  StoreCompletion& append = store->take();
  std::thread ending([&] {
    while (asked.check("", {&c1, 1}).reason != Reason::kShutdown) std::this_thread::yield();
    read.complete({.code = StoreCode::kUnavailable});
    append.complete({.code = StoreCode::kUnavailable});
  });
  checker.reset();
  ending.join();
  EXPECT_EQ(reserved.get().reason, Reason::kShutdown);
  const HardResult release = released.get();
  EXPECT_EQ(release.reason, Reason::kShutdown);
  EXPECT_TRUE(release.unknown) << "it may have been written";
}

// As an executor does that runs its tasks on the very thread that destroys the Checker.
TEST(CheckerDestructor, AnswersWhatItsOwnCallbacksHaveGivenToAnExecutor) {
  std::mutex mutex;
  std::vector<std::function<void()>> tasks;
  CheckerOptions options = patient_options();
  options.executor = [&](std::function<void()> task) {
    const std::lock_guard lock(mutex);
    tasks.push_back(std::move(task));
  };
  const auto store = std::make_shared<HoldingStore>();
  options.store = store;
  std::unique_ptr<Checker> checker = make_checker(std::move(options));
  std::atomic<bool> ended{false};
  checker->check_async(
      "u", kCandidates, kPatient, [&, &asked = *checker](const CheckResult& first) {
        EXPECT_EQ(first.reason, Reason::kShutdown);
        asked.check_async("u", kCandidates, kPatient, [&](const CheckResult& next) {
          EXPECT_EQ(next.reason, Reason::kShutdown);
          ended = true;
        });
      });
  auto destroyed = std::async(std::launch::async, [&] { checker.reset(); });
  EXPECT_EQ(destroyed.wait_for(30s), std::future_status::ready) << "it waits for the executor";
  std::vector<std::function<void()>> late;
  {
    const std::lock_guard lock(mutex);
    late.swap(tasks);
  }
  for (const auto& task : late) task();
  destroyed.wait();
  EXPECT_TRUE(ended);
  store->take().complete({.code = StoreCode::kNotFound});
}

// What a host's callback holds may be the last owner of the Checker. It ends where the callback
// does, and there the destructor would wait for itself: the Checker's parts stay, as for one that
// is destroyed in the callback.
class OwnedByCallback : public ::testing::Test {
 protected:
  struct Host {
    std::unique_ptr<Checker> checker;
  };
  OwnedByCallback() {
    CheckerOptions options = patient_options();
    options.store = store_;
    host_->checker = make_checker(std::move(options));
  }
  // If the destructor waits for itself, this does not return.
  void expect_gone_after(const std::function<void()>& last_step) {
    host_ = nullptr;
    last_step();
    EXPECT_TRUE(gone_.expired());
  }

  std::shared_ptr<HoldingStore> store_ = std::make_shared<HoldingStore>();
  std::shared_ptr<Host> host_ = std::make_shared<Host>();
  std::weak_ptr<Host> gone_ = host_;
};

TEST_F(OwnedByCallback, ItMayGoWithTheAnswer) {
  host_->checker->check_async("u", kCandidates, kPatient, [host = host_](const CheckResult&) {});
  StoreCompletion& read = store_->take();
  expect_gone_after([&] { read.complete({.code = StoreCode::kNotFound}); });
}

TEST_F(OwnedByCallback, ItMayGoWithAnAnswerThatIsReturned) {
  Checker::Callback callback = [host = host_](const CheckResult&) {};
  Checker& checker = *host_->checker;
  CheckOptions options = kPatient;
  options.return_known = true;
  expect_gone_after([&] {
    EXPECT_TRUE(checker.check_async("", kCandidates, options, std::move(callback)).answer);
  });
}

TEST_F(OwnedByCallback, ItMayGoWithACanceledCheck) {
  CheckHandle handle =
      host_->checker->check_async("u", kCandidates, kPatient, [host = host_](const CheckResult&) {})
          .handle;
  StoreCompletion& read = store_->take();
  expect_gone_after([&] { EXPECT_TRUE(handle.cancel()); });
  read.complete({.code = StoreCode::kNotFound});
}

TEST_F(OwnedByCallback, ItMayGoWithAHardCall) {
  host_->checker->hard_async({HardCall::kRelease, {"u", {"c1"}, "a"}}, {.deadline = 30s},
                             [host = host_](const HardResult&) {});
  StoreCompletion& append = store_->take();
  expect_gone_after([&] { append.complete({.code = StoreCode::kUnavailable}); });
}

TEST_F(OwnedByCallback, ItMayGoWithAPage) {
  const std::string_view id = "a";
  host_->checker->pick_async({Promise::kShared, "u", kCandidates, {&id, 1}}, {.deadline = 30s},
                             [host = host_](const PagePicks&) {});
  StoreCompletion& read = store_->take();
  expect_gone_after([&] { read.complete({.code = StoreCode::kNotFound}); });
}

}  // namespace destructor_test
}  // namespace fcap::checker_test
