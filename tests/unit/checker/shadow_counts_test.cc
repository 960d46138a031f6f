#include "checker/shadow_counts.h"

#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/checker/fixtures.h"

namespace fcap::checker_test {
namespace shadow_counts_test {

using checker::ShadowCounts;
using ::testing::ElementsAre;
using ::testing::FieldsAre;

TEST(ShadowCounts, SumOverThreads) {
  ShadowCounts counts;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 1'000; ++n) counts.add(n % 4 == 0 ? "a" : "b");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(counts.counts(), ElementsAre(FieldsAre("a", 1'000U), FieldsAre("b", 3'000U)));
}

TEST(ShadowCounts, RulesBeyondTheBoundAreCountedTogether) {
  ShadowCounts counts;
  constexpr std::size_t kRules = 20 * ShadowCounts::kRulesMax;
  for (std::size_t i = 0; i < kRules; ++i) counts.add("rule " + std::to_string(i));
  std::uint64_t total = 0;
  const std::vector<ShadowCount> all = counts.counts();
  for (const ShadowCount& count : all) total += count.count;
  EXPECT_EQ(total, kRules);
  EXPECT_LE(all.size(), ShadowCounts::kRulesMax + 1);
  EXPECT_EQ(all.front().rule_id, "");
}

TEST(ShadowCounts, AreOfTheRuleWithTheSmallestIdInACheckAndInPicks) {
  ScriptedChecker world;
  Rule first = sliding_rule("s1", "c2", 0);
  Rule second = sliding_rule("s2", "c2", 0);
  Rule other = sliding_rule("s3", "c3", 0);
  for (Rule* rule : {&first, &second, &other}) rule->mode = Rule::Mode::kShadow;
  world.checker->set_rules(rule_set({second, first, other, sliding_rule("r", "c1", 5)}));
  world.store->answer_at_once = StoreCode::kNotFound;
  const Candidate candidates[] = {{"c1"}, {"c2"}, {"c3"}};
  (void)world.checker->check("u", candidates);
  (void)world.checker->first_allowed("u", candidates, 2);
  EXPECT_THAT(world.checker->shadow_counts(),
              ElementsAre(FieldsAre("s1", 2U), FieldsAre("s3", 1U)));
  EXPECT_EQ(world.checker->stats().shadow_capped, 3U);
}

}  // namespace shadow_counts_test
}  // namespace fcap::checker_test
