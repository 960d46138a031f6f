#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"

namespace fcap::checker_test {
namespace {

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
  CheckerOptions options;
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

}  // namespace
}  // namespace fcap::checker_test
