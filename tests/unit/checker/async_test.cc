#include <atomic>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fixtures.h"
#include "tests/support/thread_state.h"

namespace fcap::checker_test {
namespace async_test {

using ::testing::SizeIs;

constexpr Candidate kCandidates[] = {{"c1"}, {"c2"}};

TEST(CheckAsync, GivesTheVerdicts) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  world.store->records["fcap:{u}"] = record_of("c1", 1);
  std::promise<CheckResult> answer;
  world.checker->check_async("u", kCandidates, kPatient,
                             [&](CheckResult result) { answer.set_value(std::move(result)); });
  const auto held = world.store->wait_for_held(1);
  EXPECT_EQ(world.checker->stats().pending, 1U);
  std::thread io([&] { world.store->answer(held[0], StoreCode::kOk); });
  io.join();
  const CheckResult result = answer.get_future().get();
  EXPECT_FALSE(result.verdicts[0].allowed);
  EXPECT_TRUE(result.verdicts[1].allowed);
}

TEST(CheckAsync, CopiesWhatItIsGiven) {
  ScriptedChecker world;
  Rule member = sliding_rule("members", "c1", 0);
  member.segment = "gold";
  world.checker->set_rules(rule_set({member, sliding_rule("r9", "c1", 9)}));
  std::promise<CheckResult> answer;
  {
    std::string user = "u";
    std::string campaign = "c1";
    std::string segment = "gold";
    const Candidate candidates[] = {{campaign}};
    const std::string_view segments[] = {segment};
    world.checker->check_async(user, candidates, {.deadline = 30s, .now = {}, .segments = segments},
                               [&](CheckResult result) { answer.set_value(std::move(result)); });
    user = campaign = segment = "????";
  }
  const auto held = world.store->wait_for_held(1);
  EXPECT_EQ(held[0].key, "fcap:{u}");
  world.store->answer(held[0], StoreCode::kNotFound);
  EXPECT_EQ(answer.get_future().get().verdicts[0].rule_id, "members");
}

// A host may hold a lock around check_async() that its callback takes too.
TEST(CheckAsync, CallbackNeverRunsInsideTheCallThatStartedIt) {
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kBreakerOpen;
  std::mutex mutex;
  std::atomic<int> answers{0};
  const auto callback = [&](const CheckResult&) {
    const std::lock_guard lock(mutex);
    ++answers;
  };
  {
    const std::lock_guard lock(mutex);
    world.checker->check_async("u", kCandidates, {}, callback);  // no rules
    world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
    world.checker->check_async("u", kCandidates, {}, callback);  // the store refuses at once
    world.checker->check_async("", kCandidates, {}, callback);   // no user
  }
  world.checker.reset();
  EXPECT_EQ(answers, 3);
}

TEST(CheckAsync, BlockingCheckInsideACallbackIsRefused) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r0", "c2", 0)}));
  world.store->answer_at_once = StoreCode::kNotFound;
  ScriptedChecker other;
  other.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  other.store->answer_at_once = StoreCode::kNotFound;
  Checker& checker = *world.checker;
  std::promise<std::vector<Reason>> answer;
  world.checker->check_async("u", kCandidates, {}, [&](const CheckResult&) {
    const CheckRequest users[] = {{"u", kCandidates}};
    EXPECT_THAT(checker.first_allowed("u", kCandidates, 2).picked, SizeIs(2));
    answer.set_value({checker.check("u", kCandidates).reason, checker.check_batch(users)[0].reason,
                      other.checker->check("u", kCandidates).reason});
  });
  EXPECT_THAT(answer.get_future().get(),
              ::testing::ElementsAre(Reason::kReentrant, Reason::kReentrant, Reason::kPassed));
  world.checker.reset();
}

TEST(CheckAsync, CallbackMayStartTheNextOneManyTimesOver) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  world.store->answer_at_once = StoreCode::kBreakerOpen;
  // A stack that grew with each of them would not survive so many.
  constexpr int kTimes = 100'000;
  std::atomic<int> calls{0};
  std::atomic<int> without_a_verdict{0};
  std::promise<void> over;
  std::function<void(CheckResult)> next = [&](const CheckResult& result) {
    if (result.verdicts.size() != std::size(kCandidates)) ++without_a_verdict;
    if (++calls == kTimes) return over.set_value();
    world.checker->check_async("u", kCandidates, {}, next);
  };
  world.checker->check_async("u", kCandidates, {}, next);
  over.get_future().wait();
  world.checker.reset();
  EXPECT_EQ(calls, kTimes) << "a callback ran twice, or one more came";
  EXPECT_EQ(without_a_verdict, 0);
}

TEST(CheckAsync, ThrowingCallbackIsLoggedAndTheCheckerGoesOn) {
  std::atomic<int> logged{0};
  CheckerOptions options = patient_options();
  // A slow machine may have it that the callback took long, which is said as well.
  options.log = [&](LogLevel, std::string_view line) {
    if (line.find("callback threw") != std::string_view::npos) ++logged;
  };
  ScriptedChecker world(options);
  world.checker->check_async("u", kCandidates, {},
                             [](const CheckResult&) { throw std::runtime_error("of the test"); });
  std::promise<void> second;
  world.checker->check_async("u", kCandidates, {}, [&](const CheckResult&) { second.set_value(); });
  second.get_future().wait();
  EXPECT_EQ(logged, 1);
}

TEST(CheckAsync, CallbackMayHoldWhatCannotBeCopied) {
  ScriptedChecker world;
  std::promise<int> answer;
  world.checker->check_async(
      "u", kCandidates, {},
      [&answer, held = std::make_unique<int>(7)](const CheckResult&) { answer.set_value(*held); });
  EXPECT_EQ(answer.get_future().get(), 7);
}

TEST(CheckAsync, CanceledCallbackNeverRunsAndWhatItHoldsIsLetGo) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  auto held = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = held;
  CheckHandle handle = world.checker
                           ->check_async("u", kCandidates, kPatient,
                                         [held = std::move(held)](const CheckResult&) {
                                           ADD_FAILURE() << "canceled";
                                         })
                           .handle;
  EXPECT_TRUE(handle.cancel());
  EXPECT_TRUE(watched.expired());
  EXPECT_FALSE(handle.cancel());
  EXPECT_EQ(world.checker->stats().async.canceled, 1U);
  EXPECT_EQ(world.checker->stats().pending, 0U);
  world.store->answer(world.store->wait_for_held(1)[0], StoreCode::kNotFound);
  world.checker.reset();
  EXPECT_FALSE(handle.cancel());
}

TEST(CheckAsync, CancelSaysWhetherTheCallbackRuns) {
  for (int round = 0; round < 300; ++round) {
    ScriptedChecker world;
    world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
    std::atomic<int> answers{0};
    CheckHandle handle =
        world.checker
            ->check_async("u", kCandidates, kPatient, [&](const CheckResult&) { ++answers; })
            .handle;
    const auto held = world.store->wait_for_held(1);
    std::thread io([&] { world.store->answer(held[0], StoreCode::kNotFound); });
    const bool canceled = handle.cancel();
    io.join();
    world.checker.reset();
    EXPECT_EQ(answers, canceled ? 0 : 1);
  }
}

TEST(CheckAsync, ReturnsWhatIsKnownAtOnceWhereAsked) {
  ScriptedChecker world;
  const auto known = [&](std::string_view user) {
    AsyncStart start =
        world.checker->check_async(user, kCandidates, kReturnsKnown,
                                   [](const CheckResult&) { ADD_FAILURE() << "not needed"; });
    EXPECT_TRUE(start.answer);
    EXPECT_FALSE(start.handle.cancel());
    return start.answer ? start.answer->reason : Reason::kTimeout;
  };
  EXPECT_EQ(known("u"), Reason::kNoRules);
  EXPECT_EQ(known(""), Reason::kNoUser);
  world.checker->set_rules(rule_set({sliding_rule("r0", "c2", 0)}));
  EXPECT_EQ(known("u"), Reason::kPassed);
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  world.store->answer_at_once = StoreCode::kBreakerOpen;
  EXPECT_EQ(known("u"), Reason::kBreakerOpen);
  world.store->answer_at_once = StoreCode::kOk;
  world.store->records["fcap:{u}"] = record_of("c1", 9);
  AsyncStart start = world.checker->check_async("u", kCandidates, kReturnsKnown, {});
  ASSERT_TRUE(start.answer);
  EXPECT_FALSE(start.answer->verdicts[0].allowed);
  EXPECT_EQ(world.checker->stats().pending, 0U);
  EXPECT_EQ(world.checker->stats().async.callbacks, 0U);
}

TEST(CheckAsync, CallsBackWhereTheStoreHasToBeWaitedFor) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  std::promise<CheckResult> answer;
  AsyncStart start =
      world.checker->check_async("u", kCandidates, kReturnsKnown,
                                 [&](CheckResult result) { answer.set_value(std::move(result)); });
  EXPECT_FALSE(start.answer);
  world.store->answer(world.store->wait_for_held(1)[0], StoreCode::kNotFound);
  EXPECT_EQ(answer.get_future().get().reason, Reason::kPassed);
}

// However many answers wait for a slow callback.
TEST(CheckAsync, CallbackNeverRunsOnTheCallersStackHoweverManyWait) {
  constexpr int kChecks = 70'000;
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kBreakerOpen;
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  std::mutex mutex;
  std::atomic<int> answers{0};
  const std::thread::id caller = std::this_thread::get_id();
  {
    const std::lock_guard lock(mutex);
    for (int i = 0; i < kChecks; ++i) {
      world.checker->check_async("u", kCandidates, {}, [&](const CheckResult&) {
        EXPECT_NE(std::this_thread::get_id(), caller);
        const std::lock_guard inside(mutex);
        ++answers;
      });
    }
    EXPECT_GE(world.checker->stats().async.answers_waiting,
              static_cast<std::uint64_t>(kChecks - 1));
  }
  while (world.checker->stats().async.callbacks < kChecks) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(answers, kChecks);
}

TEST(CheckAsync, SlowCallbackIsMeasuredAndSaid) {
  std::vector<std::string> lines;
  CheckerOptions options = patient_options();
  options.log = [&](LogLevel, std::string_view line) { lines.emplace_back(line); };
  ScriptedChecker world(options);
  std::promise<void> over;
  world.checker->check_async("u", kCandidates, {}, [&](const CheckResult&) {
    std::this_thread::sleep_for(40ms);
    over.set_value();
  });
  over.get_future().wait();
  while (world.checker->stats().async.callbacks == 0) std::this_thread::sleep_for(1ms);
  EXPECT_GE(world.checker->stats().async.callback_ns_max, 20'000'000U);
  EXPECT_GE(world.checker->stats().async.callback_ns_total, 20'000'000U);
  world.checker.reset();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], ::testing::HasSubstr("callback"));
}

// An event loop's queue.
class Loop {
 public:
  void post(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  bool run_one() {
    std::function<void()> task;
    {
      const std::lock_guard lock(mutex_);
      if (tasks_.empty()) return false;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
    return true;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return tasks_.size();
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> tasks_;
};

TEST(CheckAsync, CallbacksRunOnTheExecutor) {
  Loop loop;
  CheckerOptions options = patient_options();
  options.executor = [&](std::function<void()> task) { loop.post(std::move(task)); };
  ScriptedChecker world(options);
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  world.store->records["fcap:{u}"] = record_of("c1", 1);
  std::vector<Reason> answers;
  const auto callback = [&](const CheckResult& result) {
    answers.push_back(result.verdicts[0].reason);
  };
  world.checker->check_async("u", kCandidates, kPatient, callback);
  world.checker->check_async("", kCandidates, kPatient, callback);
  std::thread io([&] { world.store->answer(world.store->wait_for_held(1)[0], StoreCode::kOk); });
  io.join();
  EXPECT_TRUE(answers.empty());
  while (loop.run_one()) {
  }
  EXPECT_THAT(answers, ::testing::UnorderedElementsAre(Reason::kCapped, Reason::kNoUser));
}

TEST(CheckAsync, ExecutorThatThrowsLosesNoAnswer) {
  CheckerOptions options = patient_options();
  options.executor = [](const std::function<void()>&) { throw std::runtime_error("full"); };
  ScriptedChecker world(options);
  std::promise<Reason> answer;
  world.checker->check_async("u", kCandidates, {},
                             [&](const CheckResult& result) { answer.set_value(result.reason); });
  EXPECT_EQ(answer.get_future().get(), Reason::kNoRules);
}

TEST(CheckAsync, AnExecutorMayTakeATaskAndThrow) {
  std::vector<std::function<void()>> tasks;
  CheckerOptions options = patient_options();
  options.executor = [&](std::function<void()> task) {
    tasks.push_back(std::move(task));
    throw std::runtime_error("full");
  };
  ScriptedChecker world(options);
  std::promise<Reason> answer;
  world.checker->check_async("u", kCandidates, {},
                             [&](const CheckResult& result) { answer.set_value(result.reason); });
  EXPECT_EQ(answer.get_future().get(), Reason::kNoRules);
  for (const auto& task : tasks) task();
  EXPECT_EQ(world.checker->stats().pending, 0U) << "it is answered, and once";
}

// A host destroys the Checker on the very loop that its executor posts to: the tasks still in the
// queue run later, when the Checker is gone, or never.
TEST(CheckerDestructor, AnswersWhatTheExecutorHasNotRun) {
  for (const bool run_later : {true, false}) {
    Loop loop;
    CheckerOptions options = patient_options();
    options.executor = [&](std::function<void()> task) { loop.post(std::move(task)); };
    ScriptedChecker world(options);
    world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
    std::vector<Reason> answers;
    world.checker->check_async("u", kCandidates, kPatient, [&](const CheckResult& result) {
      answers.push_back(result.reason);
    });
    world.store->answer(world.store->wait_for_held(1)[0], StoreCode::kNotFound);
    EXPECT_EQ(loop.size(), 1U);
    world.checker.reset();
    EXPECT_THAT(answers, ::testing::ElementsAre(Reason::kShutdown));
    while (run_later && loop.run_one()) {
    }
    EXPECT_THAT(answers, SizeIs(1));
  }
}

TEST(CheckerDestructor, AnswersPendingChecksAndOutlivesLateCompletions) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  std::vector<CheckResult> answers;
  for (int i = 0; i < 10; ++i) {
    world.checker->check_async("u", kCandidates, kPatient,
                               [&](CheckResult result) { answers.push_back(std::move(result)); });
  }
  const CheckOptions hurried{.deadline = 1us, .now = {}, .segments = {}};
  EXPECT_EQ(world.checker->check("u", kCandidates, hurried).reason, Reason::kTimeout);
  world.checker.reset();
  ASSERT_THAT(answers, SizeIs(10));
  for (const CheckResult& answer : answers) {
    EXPECT_EQ(answer.reason, Reason::kShutdown);
    EXPECT_THAT(answer.verdicts, SizeIs(2));
    EXPECT_TRUE(answer.verdicts[0].allowed);
  }
  // The host's store lives on and answers when it pleases.
  for (const auto& held : world.store->wait_for_held(11)) {
    world.store->answer(held, StoreCode::kOk);
  }
  EXPECT_THAT(answers, SizeIs(10));
}

TEST(CheckerDestructor, WaitsForARunningCallback) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
  std::promise<void> running;
  std::promise<void> proceed;
  std::atomic<bool> finished{false};
  world.checker->check_async("u", kCandidates, kPatient, [&](const CheckResult&) {
    running.set_value();
    proceed.get_future().wait();
    finished = true;
  });
  std::thread io(
      [&] { world.store->answer(world.store->wait_for_held(1)[0], StoreCode::kNotFound); });
  running.get_future().wait();
  std::atomic<pid_t> destroying{0};
  std::thread host([&] {
    destroying = ::gettid();
    world.checker.reset();
    EXPECT_TRUE(finished);
  });
  while (destroying == 0) std::this_thread::yield();
  EXPECT_TRUE(falls_asleep(destroying));
  proceed.set_value();
  host.join();
  io.join();
}

TEST(CheckerDestructor, RacesWithCompletionsAndAnswersEachOnce) {
  for (int round = 0; round < 50; ++round) {
    ScriptedChecker world;
    world.checker->set_rules(rule_set({sliding_rule("r9", "c1", 9)}));
    constexpr std::size_t kCount = 64;
    std::vector<std::atomic<int>> answered(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      world.checker->check_async("u", kCandidates, kPatient,
                                 [&answered, i](const CheckResult&) { ++answered[i]; });
    }
    const auto held = world.store->wait_for_held(kCount);
    std::thread io([&] {
      for (const auto& read : held) world.store->answer(read, StoreCode::kNotFound);
    });
    world.checker.reset();
    io.join();
    for (const auto& times : answered) EXPECT_EQ(times, 1);
  }
}

}  // namespace async_test
}  // namespace fcap::checker_test
