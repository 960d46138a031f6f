// On which thread replaced rule sets and segments end.
#include "checker/retired_sets.h"

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"
#include "rule_text/snapshot.h"
#include "support/temporary_directory.h"

namespace fcap::checker_test {
namespace retired_test {

constexpr Candidate kCandidates[] = {{"c1"}};

// Where it ended, once it has.
class Witness {
 public:
  template <typename T>
  std::shared_ptr<const T> watch(std::shared_ptr<const T> set) {
    const T* const raw = set.get();
    return {raw, [this, set = std::move(set)](const T*) {
              ended_.set_value(std::this_thread::get_id());
            }};
  }
  std::thread::id ended_on() { return ended_.get_future().get(); }

 private:
  std::promise<std::thread::id> ended_;
};

TEST(ReplacedRules, EndOnAThreadOfTheCheckerEvenWhereAResultIsTheLastToHoldThem) {
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kNotFound;
  Witness witness;
  world.checker->set_rules(witness.watch(rule_set({sliding_rule("r1", "c1", 1)})));
  std::thread::id checking;
  std::thread caller([&] {
    checking = std::this_thread::get_id();
    CheckResult held = world.checker->check("u", kCandidates);
    ASSERT_NE(held.rules, nullptr);
    world.checker->set_rules(rule_set({sliding_rule("r2", "c1", 2)}));
    // The next check lets go of the old set as well.
    (void)world.checker->check("u", kCandidates);
    // Until nobody holds them any more but this result, and the Checker, which waits for that.
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (held.rules.use_count() > 1 && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(1ms);
    }
    EXPECT_EQ(held.rules.use_count(), 1);
    held = {};
  });
  caller.join();
  const std::thread::id ended_on = witness.ended_on();
  EXPECT_NE(ended_on, checking);
  EXPECT_NE(ended_on, std::this_thread::get_id());
}

// Each reload of a million rules would otherwise cost half a gigabyte.
TEST(ReplacedRules, EndWhereverTheyCameFrom) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("rules.snapshot");
  RuleSetSpec spec{.version = 1, .rules = {sliding_rule("r1", "c1", 1)}};
  ASSERT_TRUE(rule_text::write_snapshot(path, spec).ok());
  CheckerOptions options = patient_options();
  options.rules.snapshot_file = path;
  options.rules.poll_interval = 1s;
  const ScriptedChecker world(options);
  const std::weak_ptr<const RuleSet> former = world.checker->rules();
  ASSERT_FALSE(former.expired());
  ++spec.version;
  ASSERT_TRUE(rule_text::write_snapshot(path, spec).ok());
  expect_let_go(former);
  ASSERT_NE(world.checker->rules(), nullptr);
  EXPECT_EQ(world.checker->rules()->version(), 2U);
}

TEST(ReplacedRules, EndOnAThreadOfTheCheckerUnderLoad) {
  ScriptedChecker world;
  world.store->answer_at_once = StoreCode::kNotFound;
  constexpr std::size_t kSwaps = 50;
  std::vector<Witness> witnesses(kSwaps);
  std::atomic<bool> done{false};
  std::vector<std::thread> callers;
  std::vector<std::thread::id> checking(2);
  callers.reserve(2);
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  for (std::size_t i = 0; i < 2; ++i) {
    callers.emplace_back([&, i] {
      checking[i] = std::this_thread::get_id();
      while (!done) {
        (void)world.checker->check("u", kCandidates);
        world.checker->check_async("u", kCandidates, {}, {});
      }
    });
  }
  for (Witness& witness : witnesses) {
    world.checker->set_rules(witness.watch(rule_set({sliding_rule("r1", "c1", 1)})));
    std::this_thread::sleep_for(1ms);
  }
  world.checker->set_rules(rule_set({}));
  std::vector<std::thread::id> ended;
  ended.reserve(kSwaps);
  for (Witness& witness : witnesses) ended.push_back(witness.ended_on());
  done = true;
  for (std::thread& caller : callers) caller.join();
  for (const std::thread::id id : ended) {
    EXPECT_EQ(id, ended.front());
    EXPECT_NE(id, checking[0]);
    EXPECT_NE(id, checking[1]);
    EXPECT_NE(id, std::this_thread::get_id());
  }
}

// Each look of a thread that looks all the time wakes a processor.
TEST(RetiredSets, OneThatAHostKeepsIsLookedAtEverMoreRarely) {
  std::atomic<int> looks{0};
  checker::RetiredSets retired([&] { ++looks; });
  ASSERT_TRUE(retired.start({}).ok());
  const auto kept = std::make_shared<const int>(0);
  const auto begun = std::chrono::steady_clock::now();
  retired.destroy_when_unused(kept);
  while (looks < 6) std::this_thread::sleep_for(1ms);
  // No wait is shorter than it was asked for, on whatever machine.
  EXPECT_GE(std::chrono::steady_clock::now() - begun, 5ms + 10ms + 20ms + 40ms + 80ms);
}

}  // namespace retired_test
}  // namespace fcap::checker_test
