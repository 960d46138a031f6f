#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "ledger/encode.h"
#include "tests/unit/rules/random_world.h"
#include "tests/unit/rules/reference.h"
#include "tests/unit/rules/rules_fixture.h"

// Random rule sets, histories and instants, compared with the reference. Re-run one with
// FCAP_TEST_SEED.
namespace fcap::rules {
namespace property_test {

constexpr std::string_view kUser = "u1";

// Who is in which segment, told in the two ways there are: some by the caller, some are stored,
// some both.
struct Told {
  std::vector<std::string_view> by_caller;
  std::shared_ptr<const SegmentSet> stored;
};

Told tell(const reference::World& world, std::mt19937_64& random) {
  Told told;
  SegmentSetBuilder builder;
  EXPECT_TRUE(builder.name("s2").ok());
  EXPECT_TRUE(builder.add("s1", "somebody else").ok());
  for (const std::string& segment : world.segments) {
    const std::uint64_t how = random() % 3;
    if (how != 0) told.by_caller.push_back(segment);
    if (how == 1) continue;
    EXPECT_TRUE(builder.add(segment, kUser).ok());
  }
  told.stored = std::move(builder).finish(1);
  return told;
}

// One world, some instants, all candidates.
void compare_one(std::uint64_t seed) {
  SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed));
  RandomWorld random(seed);
  const reference::World world = random.make();
  RuleSetSpec spec = world.spec;
  std::shuffle(spec.rules.begin(), spec.rules.end(), random.random());
  std::shuffle(spec.campaigns.begin(), spec.campaigns.end(), random.random());
  auto built = RuleSet::build(spec, {.retention = std::chrono::milliseconds{kRetentionMs}});
  ASSERT_TRUE(built.ok()) << built.status().text();
  const ledger::Ledger ledger = ledger_of(world, random.random());
  const Told told = tell(world, random.random());

  Evaluator evaluator;
  const std::int64_t now_ms = random.instant();
  const Evaluator::EvaluatorInput question{.rules = *built.value(),
                                           .ledger = ledger,
                                           .now = instant_from_ms(now_ms),
                                           .segments = told.by_caller,
                                           .stored = told.stored.get(),
                                           .user = kUser};
  std::vector<reference::Candidate> candidates;
  std::vector<CandidateKey> keys;
  for (int i = 0; i < 3; ++i) {
    candidates.push_back(random.candidate());
    keys.push_back(candidate_key({candidates.back().campaign, candidates.back().creative}));
  }
  std::vector<Verdict> verdicts(keys.size());
  const std::uint32_t shadow = evaluator.evaluate(question, keys, verdicts);
  std::uint32_t expected_shadow = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    SCOPED_TRACE(candidates[i].campaign + "/" + candidates[i].creative + " at " +
                 std::to_string(now_ms));
    const reference::Answer expected = reference::judge(world, candidates[i], now_ms);
    expected_shadow += expected.shadow ? 1 : 0;
    expect_same(verdicts[i], expected);
    const CandidateExplanation explanation =
        evaluator.explain(question, {candidates[i].campaign, candidates[i].creative});
    expect_same(explanation.verdict, expected);
    expect_same(explanation, expected);
  }
  EXPECT_EQ(shadow, expected_shadow);
}

TEST(Property, EveryAnswerEqualsTheReference) {
  const bool one_seed = given_seed().has_value();
  const std::uint64_t seed = test_seed();
  std::cout << "FCAP_TEST_SEED=" << seed << "\n";
  const std::uint64_t worlds = one_seed ? 1 : 1500;
  for (std::uint64_t i = 0; i < worlds && !HasFailure(); ++i) compare_one(seed + i);
}

TEST(Property, CompactionAtAnyPointLeavesEveryAnswerAsItWas) {
  const std::uint64_t seed = test_seed();
  std::cout << "FCAP_TEST_SEED=" << seed << "\n";
  for (std::uint64_t i = 0; i < 1500 && !HasFailure(); ++i) {
    SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed + i));
    RandomWorld random(seed + i);
    const reference::World world = random.make();
    auto built = RuleSet::build(world.spec, {.retention = std::chrono::milliseconds{kRetentionMs}});
    ASSERT_TRUE(built.ok()) << built.status().text();
    const ledger::Ledger ledger = ledger_of(world, random.random());
    const std::int64_t now_ms = random.instant();
    // Whenever it was compacted: the trimming clock is never ahead of the check's.
    const Instant trim_now =
        instant_from_ms(std::max<std::int64_t>(0, now_ms - random.between(0, kRetentionMs)));
    const ledger::Compacted compacted = ledger::compact(
        ledger, {}, {.retention = std::chrono::milliseconds{kRetentionMs}, .trim_now = trim_now});
    ledger::Ledger again;
    ASSERT_EQ(again.decode(compacted.record), ledger::DecodeCode::kOk);

    const std::vector<std::string_view> segments(world.segments.begin(), world.segments.end());
    const reference::Candidate candidate = random.candidate();
    const CandidateKey key = candidate_key({candidate.campaign, candidate.creative});
    Evaluator evaluator;
    Verdict before;
    Verdict after;
    evaluator.evaluate({*built.value(), ledger, instant_from_ms(now_ms), segments}, {&key, 1},
                       {&before, 1});
    evaluator.evaluate({*built.value(), again, instant_from_ms(now_ms), segments}, {&key, 1},
                       {&after, 1});
    EXPECT_EQ(before.allowed, after.allowed);
    EXPECT_EQ(before.rule_id, after.rule_id);
    EXPECT_EQ(before.count, after.count);
    EXPECT_EQ(before.eligible_at, after.eligible_at);
  }
}

}  // namespace property_test
}  // namespace fcap::rules
