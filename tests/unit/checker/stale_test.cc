// Checks that a replica has answered.
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fixtures.h"

namespace fcap::checker_test {
namespace stale_test {

using ::testing::ElementsAre;

constexpr std::string_view kKey = "fcap:{u}";

// A user who has seen c1 twice, in the copy that a replica has.
class StaleRead : public ::testing::Test {
 protected:
  explicit StaleRead(CheckerOptions options = patient_options()) : world_(std::move(options)) {
    world_.store->answer_at_once = StoreCode::kOk;
    world_.store->records[std::string(kKey)] = record_of("c1", 2);
    world_.store->stale = true;
    world_.checker->set_rules(rule_set(
        {sliding_rule("r1", "c1", 2), sliding_rule("r2", "c2", 2), sliding_rule("r0", "c0", 0)}));
  }

  CheckResult check() { return world_.checker->check("u", candidates_, kPatient); }

  const Candidate candidates_[4] = {{"c1"}, {"c2"}, {"c0"}, {"c3"}};
  ScriptedChecker world_;
};

void expect_stale(const CheckResult& result) {
  EXPECT_EQ(result.reason, Reason::kPassed);
  ASSERT_EQ(result.verdicts.size(), 4U);
  for (const Verdict& verdict : result.verdicts) EXPECT_TRUE(verdict.stale);
  EXPECT_EQ(result.verdicts[0].reason, Reason::kCapped);
  EXPECT_EQ(result.verdicts[0].count, 2U);
  EXPECT_FALSE(result.verdicts[0].complete);
  EXPECT_TRUE(result.verdicts[1].allowed);
  EXPECT_FALSE(result.verdicts[1].complete);
  // Certain whatever is missing.
  EXPECT_EQ(result.verdicts[2].reason, Reason::kCapped);
  EXPECT_TRUE(result.verdicts[2].complete);
  EXPECT_TRUE(result.verdicts[3].complete);
}

TEST_F(StaleRead, SaysSoInEveryVerdict) {
  expect_stale(check());
  EXPECT_EQ(world_.checker->stats().reads.stale, 1U);
  EXPECT_EQ(world_.checker->stats().reads.found, 1U);
}

TEST_F(StaleRead, SaysSoInABatchAndAsynchronously) {
  const CheckRequest users[] = {{"u", candidates_}, {"nobody", candidates_}};
  const auto results = world_.checker->check_batch(users, kPatient);
  ASSERT_EQ(results.size(), 2U);
  expect_stale(results[0]);
  EXPECT_TRUE(results[1].verdicts[0].stale);
  EXPECT_TRUE(results[1].verdicts[0].allowed);
  std::promise<CheckResult> promised;
  (void)world_.checker->check_async("u", candidates_, kPatient, [&](CheckResult result) {
    promised.set_value(std::move(result));
  });
  expect_stale(promised.get_future().get());
}

TEST_F(StaleRead, SaysSoThroughAnExecutor) {
  CheckerOptions options = patient_options();
  options.executor = [](const std::function<void()>& task) { task(); };
  ScriptedChecker world(std::move(options));
  world.store->answer_at_once = StoreCode::kNotFound;
  world.store->stale = true;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 2)}));
  std::promise<bool> promised;
  (void)world.checker->check_async("u", candidates_, kPatient, [&](const CheckResult& result) {
    promised.set_value(result.verdicts.front().stale);
  });
  EXPECT_TRUE(promised.get_future().get());
}

TEST_F(StaleRead, SaysSoInAChoice) {
  const PickResult picked = world_.checker->first_allowed("u", candidates_, 2, kPatient);
  EXPECT_THAT(picked.picked, ElementsAre(1, 3));
  EXPECT_TRUE(picked.stale);
  world_.store->stale = false;
  EXPECT_FALSE(world_.checker->first_allowed("u", candidates_, 2, kPatient).stale);
}

TEST_F(StaleRead, OfAMasterIsNone) {
  world_.store->stale = false;
  for (const Verdict& verdict : check().verdicts) {
    EXPECT_FALSE(verdict.stale);
    EXPECT_TRUE(verdict.complete);
  }
  EXPECT_EQ(world_.checker->stats().reads.stale, 0U);
}

TEST_F(StaleRead, CountsWhatThisProcessHasShown) {
  world_.store->records[std::string(kKey)] = record_of("c1", 1);
  EXPECT_TRUE(check().verdicts[0].allowed);
  EXPECT_TRUE(world_.checker->note_shown({"u", {"c1"}, "e1", kNow}));
  EXPECT_EQ(check().verdicts[0].reason, Reason::kCapped);
}

CheckerOptions caching() {
  CheckerOptions options = patient_options();
  options.local.cached_caps_max = 1000;
  return options;
}

class StaleReadWithCache : public StaleRead {
 protected:
  StaleReadWithCache() : StaleRead(caching()) {}
};

TEST_F(StaleReadWithCache, LeavesACapThatTheMasterHasTold) {
  world_.store->stale = false;
  EXPECT_EQ(check().verdicts[0].reason, Reason::kCapped);
  world_.store->stale = true;
  world_.store->records.clear();
  const CheckResult result = check();
  EXPECT_EQ(result.verdicts[0].reason, Reason::kCapped);
  EXPECT_TRUE(result.verdicts[0].cached);
  EXPECT_FALSE(result.verdicts[0].stale) << "it is certain";
  EXPECT_TRUE(result.verdicts[1].stale);
  EXPECT_THAT(world_.checker->first_allowed("u", candidates_, 2, kPatient).picked,
              ElementsAre(1, 3));
}

TEST_F(StaleReadWithCache, AddsNothingToTheCache) {
  EXPECT_EQ(check().verdicts[0].reason, Reason::kCapped);
  EXPECT_EQ(world_.checker->stats().cache.caps, 0U);
}

}  // namespace stale_test
}  // namespace fcap::checker_test
