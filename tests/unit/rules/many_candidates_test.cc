#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/rules/rules_fixture.h"

namespace fcap::rules {
namespace many_candidates_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

// 300 campaigns of as many advertisers, and a history over all of them.
class ManyCandidates : public ::testing::Test {
 protected:
  static constexpr int kCampaigns = 300;

  ManyCandidates() {
    for (int i = 0; i < kCampaigns; ++i) {
      const std::string number = std::to_string(i);
      spec_.campaigns.push_back({.id = "c" + number,
                                 .advertiser_id = "a" + number,
                                 .groups = {"g" + std::to_string(i % 7)}});
      add_events(i, 1 + i % 4);
    }
    spec_.rules = {
        {.id = "c", .target = "*", .limit = 4, .window = sliding(1h)},
        {.id = "k", .scope = Scope::kCreative, .target = "*", .limit = 3, .window = fixed(1h)},
        {.id = "a", .scope = Scope::kAdvertiser, .target = "*", .limit = 2, .window = sliding(2h)},
        {.id = "g", .scope = Scope::kGroup, .target = "g3", .limit = 90, .window = lifetime()},
        {.id = "u", .scope = Scope::kUser, .limit = 10'000, .window = lifetime()}};
    rules_ = RuleSet::build(spec_, {}).value();
  }

  void add_events(int campaign, int count) {
    const std::string number = std::to_string(campaign);
    for (int i = 0; i < count; ++i) {
      ledger_.merge({.time = instant_from_ms(1000 + campaign * 10 + i),
                     .campaign = ledger::id_hash("c" + number),
                     .creative = ledger::id_hash("k" + number),
                     .type = EventType::kImpression,
                     .fingerprint = static_cast<std::uint32_t>(i)});
    }
  }

  static CandidateKey key(int campaign) {
    const std::string number = std::to_string(campaign);
    return candidate_key({"c" + number, "k" + number});
  }

  std::vector<Verdict> judge(Evaluator& evaluator, std::span<const CandidateKey> keys) {
    std::vector<Verdict> verdicts(keys.size());
    evaluator.evaluate({*rules_, ledger_, instant_from_ms(100'000), {}}, keys, verdicts);
    return verdicts;
  }

  RuleSetSpec spec_{.version = 1};
  std::shared_ptr<const RuleSet> rules_;
  ledger::Ledger ledger_;
};

TEST_F(ManyCandidates, EachIsJudgedAsIfItWereAlone) {
  std::vector<CandidateKey> keys;
  keys.reserve(kCampaigns);
  for (int i = 0; i < kCampaigns; ++i) keys.push_back(key(i));
  Evaluator together;
  const std::vector<Verdict> all = judge(together, keys);
  int capped = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    SCOPED_TRACE(i);
    Evaluator alone;
    const Verdict one = judge(alone, {&keys[i], 1})[0];
    EXPECT_EQ(all[i].allowed, one.allowed);
    EXPECT_EQ(all[i].rule_id, one.rule_id);
    EXPECT_EQ(all[i].count, one.count);
    EXPECT_EQ(all[i].eligible_at, one.eligible_at);
    // Campaigns have 1 to 4 events, advertisers may have 2, group g3 is full.
    EXPECT_EQ(one.allowed, i % 4 == 0 && i % 7 != 3);
    capped += one.allowed ? 0 : 1;
  }
  EXPECT_GT(capped, 200);
}

TEST_F(ManyCandidates, ARepeatedCandidateGetsTheSameVerdict) {
  const std::vector<CandidateKey> keys = {key(5), key(8), key(5)};
  Evaluator evaluator;
  const std::vector<Verdict> verdicts = judge(evaluator, keys);
  EXPECT_EQ(verdicts[0].rule_id, verdicts[2].rule_id);
  EXPECT_EQ(verdicts[0].eligible_at, verdicts[2].eligible_at);
  EXPECT_FALSE(verdicts[0].allowed);
}

TEST_F(ManyCandidates, AnEvaluatorThatChangesRuleSetsAndUsersCarriesNothingOver) {
  const CandidateKey keys[] = {key(5)};
  Evaluator evaluator;
  EXPECT_FALSE(judge(evaluator, keys)[0].allowed);
  RuleSetSpec other{.version = 2};
  other.rules = {{.id = "day",
                  .target = "c5",
                  .limit = 9,
                  .window = calendar(CalendarUnit::kDay, "Europe/Berlin")}};
  const auto first = rules_;
  rules_ = RuleSet::build(other, {}).value();
  EXPECT_TRUE(judge(evaluator, keys)[0].allowed);
  other.rules[0].window = calendar(CalendarUnit::kHour, "Asia/Kolkata");
  other.rules[0].limit = 2;
  rules_ = RuleSet::build(other, {}).value();
  EXPECT_EQ(judge(evaluator, keys)[0].rule_id, "day");
  rules_ = first;
  ledger_.clear();
  EXPECT_TRUE(judge(evaluator, keys)[0].allowed);
}

// Candidates share what has been worked out for their advertisers, groups and user.
TEST_F(ManyCandidates, WithFixedWindowsAreEligibleAtTheSameInstantTogetherAsAlone) {
  spec_.rules = {
      {.id = "a", .scope = Scope::kAdvertiser, .target = "*", .limit = 2, .window = fixed(10s)},
      {.id = "g", .scope = Scope::kGroup, .target = "*", .limit = 3, .window = fixed(40s)},
      {.id = "h", .scope = Scope::kGroup, .target = "g2", .limit = 1, .window = sliding(60s)},
      {.id = "later",
       .scope = Scope::kGroup,
       .target = "g3",
       .limit = 1,
       .window = fixed(200s),
       .start = instant_from_ms(101'000)},
      {.id = "u", .scope = Scope::kUser, .limit = 30, .window = fixed(30s)}};
  for (int i = 0; i < 1000; ++i) {
    ledger_.merge({.time = instant_from_ms(20'000 + i * 77),
                   .campaign = ledger::id_hash("c" + std::to_string(i * 31 % 100)),
                   .fingerprint = static_cast<std::uint32_t>(1000 + i)});
  }
  rules_ = RuleSet::build(spec_, {}).value();
  std::vector<CandidateKey> keys;
  for (int i = 0; i < kCampaigns; ++i) keys.push_back(key(i % 2 == 0 ? i : kCampaigns - i));
  Evaluator together;
  const std::vector<Verdict> verdicts = judge(together, keys);
  std::set<std::int64_t> instants;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    Evaluator alone;
    const Verdict verdict = judge(alone, {&keys[i], 1})[0];
    EXPECT_EQ(eligible_ms(verdicts[i]), eligible_ms(verdict)) << "candidate " << i;
    EXPECT_EQ(verdicts[i].rule_id, verdict.rule_id) << "candidate " << i;
    instants.insert(eligible_ms(verdict));
  }
  EXPECT_GT(instants.size(), 1U) << "the candidates differ";
}

}  // namespace many_candidates_test
}  // namespace fcap::rules
