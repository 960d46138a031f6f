#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixtures.h"

namespace fcap::checker_test {
namespace fork_test {

constexpr Candidate kCandidates[] = {{"c1"}};

// What the child exits with when a step did not go as it must; the step's number.
int child_steps(ScriptedChecker& world) {
  const CheckResult result = world.checker->check("u", kCandidates);
  if (result.reason != Reason::kForked || !result.verdicts.at(0).allowed) return 1;
  const CheckRequest users[] = {{"u", kCandidates}};
  if (world.checker->check_batch(users).at(0).reason != Reason::kForked) return 2;
  if (world.checker->first_allowed("u", kCandidates, 1).picked.size() != 1) return 3;
  Reason async_reason = Reason::kPassed;
  world.checker->check_async("u", kCandidates, {},
                             [&](const CheckResult& answer) { async_reason = answer.reason; });
  if (async_reason != Reason::kForked) return 4;
  world.checker->set_rules(nullptr);
  if (world.checker->rules() != nullptr) return 5;
  if (world.checker->stats().unjudged[Reason::kForked] != 4) return 6;
  world.checker.reset();
  return 0;
}

TEST(Fork, ChildAnswersForkedAndTheParentIsUnharmed) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r0", "c1", 0), sliding_rule("r9", "c1", 9)}));
  std::promise<CheckResult> pending;
  world.checker->check_async("u", kCandidates, kPatient,
                             [&](CheckResult result) { pending.set_value(std::move(result)); });
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(child_steps(world));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);

  world.store->answer(world.store->wait_for_held(1)[0], StoreCode::kNotFound);
  EXPECT_EQ(pending.get_future().get().verdicts[0].reason, Reason::kCapped);
  world.store->answer_at_once = StoreCode::kNotFound;
  EXPECT_EQ(world.checker->check("u", kCandidates).verdicts[0].reason, Reason::kCapped);
}

// A lock that is held at the instant of the fork is held for good in the child.
TEST(Fork, ChildAnswersForkedWhateverTheParentsThreadsAreInside) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  // Unlike malloc() and ThreadSanitizer, it leaves the locks of its allocator held in the child, so
  // that any allocation there may hang. The release and TSan builds run this test.
  GTEST_SKIP() << "the allocator of this AddressSanitizer does not survive a fork";
#endif
#endif
  CheckerOptions options = patient_options();
  options.store = make_memory_store();
  options.local.cached_caps_max = 1'000;
  Result<std::unique_ptr<Checker>> made = Checker::create(std::move(options));
  ASSERT_TRUE(made.ok()) << made.status().text();
  const std::unique_ptr<Checker> checker = std::move(made).value();
  const std::shared_ptr<const RuleSet> rules = rule_set({sliding_rule("r0", "c1", 0)});
  checker->set_rules(rules);
  std::atomic<bool> done{false};
  std::vector<std::thread> busy;
  busy.reserve(3);
  for (int thread = 0; thread < 3; ++thread) {
    busy.emplace_back([&, thread] {
      const CheckRequest users[] = {{"a", kCandidates}, {"b", kCandidates}};
      for (std::uint64_t i = 0; !done; ++i) {
        const std::string user = "u" + std::to_string(i % 50);
        checker->check_async(user, kCandidates, {}, {});
        (void)checker->check(user, kCandidates);
        (void)checker->check_batch(users);
        (void)checker->first_allowed(user, kCandidates, 1);
        (void)checker->note_shown({user, kCandidates[0], std::to_string(i)});
        if (thread == 0) checker->set_rules(rules);
        (void)checker->stats();
      }
    });
  }
  for (int forks = 0; forks < 150 && !::testing::Test::HasFailure(); ++forks) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      int answers = 0;
      for (int i = 0; i < 70; ++i) {
        const std::string user = "u" + std::to_string(i);
        checker->check_async(user, kCandidates, {}, [&](const CheckResult& answer) {
          if (answer.reason == Reason::kForked && answer.verdicts.size() == 1) ++answers;
        });
      }
      const CheckRequest users[] = {{"u", kCandidates}};
      const bool right =
          answers == 70 && checker->check("u", kCandidates).reason == Reason::kForked &&
          checker->check_batch(users).at(0).reason == Reason::kForked &&
          checker->first_allowed("u", kCandidates, 1).reason == Reason::kForked &&
          !checker->note_shown({"u", kCandidates[0], "e"}) &&
          checker->stats().unjudged[Reason::kForked] >= 73 && checker->segments() == nullptr;
      ::_exit(right ? 0 : 1);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "the child hung; fork " << forks;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  done = true;
  for (std::thread& thread : busy) thread.join();
}

TEST(Fork, CheckerMadeInTheChildWorksThere) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer starts no threads in a fork of a threaded process";
#endif
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ScriptedChecker world;
    world.checker->set_rules(rule_set({sliding_rule("r0", "c1", 0)}));
    world.store->answer_at_once = StoreCode::kNotFound;
    const bool capped =
        world.checker->check("u", kCandidates).verdicts.at(0).reason == Reason::kCapped;
    world.checker.reset();
    ::_exit(capped ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace fork_test
}  // namespace fcap::checker_test
