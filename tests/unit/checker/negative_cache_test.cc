#include "checker/negative_cache.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fixtures.h"

namespace fcap::checker_test {
namespace negative_cache_test {

using checker::NegativeCache;

constexpr NegativeCache::Clock::time_point kStart{std::chrono::hours(1)};
constexpr rules::CandidateKey kCandidate{.campaign = 7, .creative = 0};

class NegativeCacheTest : public ::testing::Test {
 protected:
  void put(const NegativeCache::CacheSubject& subject, rules::CandidateKey candidate = kCandidate,
           std::optional<Instant> until = kNow + 1h) {
    cache_.put(subject, candidate, kNow, {.rule = &rule_, .count = 3, .until = until}, kStart);
  }
  std::optional<Verdict> find(const NegativeCache::CacheSubject& subject, Instant now = kNow,
                              NegativeCache::Clock::time_point clock_now = kStart) {
    return cache_.find(subject, kCandidate, now, clock_now);
  }

  NegativeCache cache_{{.verdicts_max = 1024, .kept_for = 60s}};
  const Rule rule_ = sliding_rule("r1", "c1", 3);
  const NegativeCache::CacheSubject subject_ = cache_.subject("u1", {}, 1);
};

TEST_F(NegativeCacheTest, GivesTheRuleItsCountAndUntilWhenItIsCertain) {
  put(subject_);
  const auto verdict = find(subject_);
  ASSERT_TRUE(verdict);
  EXPECT_FALSE(verdict->allowed);
  EXPECT_TRUE(verdict->cached);
  EXPECT_EQ(verdict->reason, Reason::kCapped);
  EXPECT_EQ(verdict->rule_id, "r1");
  EXPECT_EQ(verdict->count, 3U);
  EXPECT_EQ(verdict->limit, 3U);
  EXPECT_EQ(verdict->eligible_at, kNow + 1h);
}

TEST_F(NegativeCacheTest, HoldsFromTheEvaluationToTheLastCertainMillisecond) {
  put(subject_);
  EXPECT_FALSE(find(subject_, kNow - 1ms));
  EXPECT_TRUE(find(subject_, kNow + 1h - 1ms));
  EXPECT_FALSE(find(subject_, kNow + 1h));
}

TEST_F(NegativeCacheTest, IsForgottenAfterItsTimeWhateverTheRule) {
  put(subject_, kCandidate, std::nullopt);
  EXPECT_TRUE(find(subject_, kNow + std::chrono::days(1000), kStart + 60s - 1ns));
  EXPECT_FALSE(find(subject_, kNow, kStart + 60s));
}

TEST_F(NegativeCacheTest, IsForOneUserCandidateSegmentsAndRuleSet) {
  const std::array<std::string_view, 2> segments{"a", "b"};
  put(cache_.subject("u1", segments, 1));
  const std::array<std::string_view, 2> reversed{"b", "a"};
  EXPECT_TRUE(find(cache_.subject("u1", reversed, 1)));
  EXPECT_FALSE(find(cache_.subject("u2", segments, 1)));
  EXPECT_FALSE(find(cache_.subject("u1", segments, 2)));
  EXPECT_FALSE(find(cache_.subject("u1", {}, 1)));
  EXPECT_FALSE(find(cache_.subject("u1", {segments.data(), 1}, 1)));
  const auto other =
      cache_.find(cache_.subject("u1", segments, 1), {.campaign = 7, .creative = 1}, kNow, kStart);
  EXPECT_FALSE(other);
}

TEST_F(NegativeCacheTest, StaysWithinItsBound) {
  for (std::uint64_t i = 0; i < 10'000; ++i) put(subject_, {.campaign = i, .creative = 0});
  EXPECT_LE(cache_.size(), 1024U);
  EXPECT_GT(cache_.size(), 1000U);
}

// Not the next power of two: each verdict costs memory that was counted on.
TEST_F(NegativeCacheTest, StaysWithinABoundThatIsNoPowerOfTwo) {
  NegativeCache cache({.verdicts_max = 600, .kept_for = 60s});
  const auto subject = cache.subject("u1", {}, 1);
  const rules::CappedUntil capped{.rule = &rule_, .count = 3, .until = kNow + 1h};
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    cache.put(subject, {.campaign = i, .creative = 0}, kNow, capped, kStart);
  }
  EXPECT_LE(cache.size(), 600U);
  EXPECT_GT(cache.size(), 590U);
}

CheckerOptions caching() {
  CheckerOptions options = patient_options();
  options.local.cached_caps_max = 1024;
  return options;
}

class CachingChecker : public ::testing::Test {
 protected:
  CachingChecker() : world_(caching()) {
    world_.checker->set_rules(rule_set({sliding_rule("r1", "c1", 3), sliding_rule("r2", "c2", 9)}));
    world_.store->answer_at_once = StoreCode::kOk;
    world_.store->records["fcap:{u1}"] = record_of("c1", 3);
  }

  ScriptedChecker world_;
};

TEST_F(CachingChecker, DoesNotReadWhenEveryCandidateIsCapped) {
  const Candidate capped[] = {{"c1", {}}};
  EXPECT_FALSE(world_.checker->check("u1", capped).verdicts[0].cached);
  const CheckResult result = world_.checker->check("u1", capped);
  EXPECT_TRUE(result.verdicts[0].cached);
  EXPECT_EQ(result.verdicts[0].rule_id, "r1");
  EXPECT_EQ(world_.store->get_count, 1U);
  EXPECT_TRUE(world_.checker->first_allowed("u1", capped, 1).picked.empty());
  EXPECT_EQ(world_.store->get_count, 1U);

  const Candidate both[] = {{"c1", {}}, {"c2", {}}};
  EXPECT_TRUE(world_.checker->check("u1", both).verdicts[1].allowed);
  EXPECT_EQ(world_.store->get_count, 2U);
  const CheckerStats stats = world_.checker->stats();
  EXPECT_EQ(stats.cache.checks, 2U);
  EXPECT_EQ(stats.cache.verdicts, 2U);
  EXPECT_EQ(stats.cache.caps, 1U);
}

TEST_F(CachingChecker, KeepsCapsThroughAnOutage) {
  const Candidate both[] = {{"c1", {}}, {"c2", {}}};
  (void)world_.checker->check("u1", both);
  world_.store->answer_at_once = StoreCode::kBreakerOpen;
  const CheckResult result = world_.checker->check("u1", both);
  EXPECT_EQ(result.reason, Reason::kBreakerOpen);
  EXPECT_FALSE(result.verdicts[0].allowed);
  EXPECT_EQ(result.verdicts[0].rule_id, "r1");
  EXPECT_TRUE(result.verdicts[1].allowed);
  EXPECT_EQ(result.verdicts[1].reason, Reason::kBreakerOpen);
  const PickResult first = world_.checker->first_allowed("u1", both, 2);
  EXPECT_EQ(first.picked, std::vector<std::size_t>{1});
  EXPECT_EQ(first.reason, Reason::kBreakerOpen);
}

TEST_F(CachingChecker, ANewRuleSetIsANewStartEvenWithTheSameVersion) {
  const Candidate capped[] = {{"c1", {}}};
  (void)world_.checker->check("u1", capped);
  world_.checker->set_rules(rule_set({sliding_rule("r1", "c1", 4)}));
  EXPECT_TRUE(world_.checker->check("u1", capped).verdicts[0].allowed);
}

TEST_F(CachingChecker, WhatIsOnlyBelievedIsNotKept) {
  const Candidate candidate[] = {{"c1", {}}};
  world_.store->records["fcap:{u1}"] = record_of("c1", 2);
  ASSERT_TRUE(world_.checker->note_shown({"u1", candidate[0], "e1"}));
  EXPECT_FALSE(world_.checker->check("u1", candidate).verdicts[0].allowed);
  EXPECT_EQ(world_.checker->stats().cache.caps, 0U);
}

TEST(NoteShown, CountsUntilTheLedgerHasIt) {
  ScriptedChecker world;
  world.checker->set_rules(rule_set({sliding_rule("r1", "c1", 1)}));
  world.store->answer_at_once = StoreCode::kOk;
  const Candidate candidate[] = {{"c1", {}}};
  ASSERT_TRUE(world.checker->note_shown({"u1", candidate[0], "e1"}));
  EXPECT_EQ(world.checker->stats().shown.kept, 1U);
  EXPECT_FALSE(world.checker->check("u1", candidate).verdicts[0].allowed);
  EXPECT_TRUE(world.checker->check("u2", candidate).verdicts[0].allowed);

  std::string record;
  const ledger::Entry entry{.time = kNow,
                            .campaign = ledger::id_hash("c1"),
                            .creative = 0,
                            .type = EventType::kImpression,
                            .fingerprint = ledger::fingerprint("e1")};
  ledger::append_entries({&entry, 1}, record);
  world.store->records["fcap:{u1}"] = record;
  EXPECT_EQ(world.checker->check("u1", candidate).verdicts[0].count, 1U);
  const CheckerStats stats = world.checker->stats();
  EXPECT_EQ(stats.shown.noted, 1U);
  EXPECT_EQ(stats.shown.confirmed, 1U);
  EXPECT_EQ(stats.shown.kept, 0U);
}

TEST(NoteShown, TakesOnlyWhatAnEventCouldBe) {
  ScriptedChecker world;
  const std::string long_id(257, 'x');
  EXPECT_FALSE(world.checker->note_shown({"", {"c1", {}}, "e1"}));
  EXPECT_FALSE(
      world.checker->note_shown({"00000000-0000-0000-0000-000000000000", {"c1", {}}, "e1"}));
  EXPECT_FALSE(world.checker->note_shown({long_id, {"c1", {}}, "e1"}));
  EXPECT_FALSE(world.checker->note_shown({"u1", {"", {}}, "e1"}));
  EXPECT_FALSE(world.checker->note_shown({"u1", {long_id, {}}, "e1"}));
  EXPECT_FALSE(world.checker->note_shown({"u1", {"c1", long_id}, "e1"}));
  EXPECT_FALSE(world.checker->note_shown({"u1", {"c1", {}}, ""}));
  EXPECT_FALSE(world.checker->note_shown({"u1", {"c1", {}}, long_id}));
  EXPECT_TRUE(world.checker->note_shown({"u1", {"c1", "cr1"}, "e1"}));
  EXPECT_EQ(world.checker->stats().shown.noted, 1U);
}

TEST(NoteShown, CanBeSwitchedOff) {
  CheckerOptions options = patient_options();
  options.local.shown_max = 0;
  ScriptedChecker world(std::move(options));
  EXPECT_FALSE(world.checker->note_shown({"u1", {"c1", {}}, "e1"}));
}

}  // namespace negative_cache_test
}  // namespace fcap::checker_test
