// Workloads: what one check costs besides decoding, in-process; "allocs" are allocations of one.
//
//   headline      10 candidates x 2 rules (own campaign, user) on 30 entries of 10 campaigns
//   reserved      the headline with 3 live reservations in the record and limits of one more
//   advertisers   the same with campaign and advertiser rules, each candidate of its own advertiser
//   calendar      the same with a calendar day in Europe/Berlin instead of a sliding window
//   capped        the headline, every candidate capped
//   user counted  the headline with a limit per user that makes it count all of the user's entries
//   candidates    1 to 1,000 candidates x 5 rules (campaign and advertiser twice, user)
//   rules         the headline with 1 to 1,000,000 rules loaded, a different user each time
//   entries       the headline on 0 to 2,000 entries

#include <benchmark/benchmark.h>

#include <fcap/rule_set.h>

#include "ledger/ids.h"
#include "path/population.h"
#include "rules/evaluate.h"
#include "unit/ledger/counting_new.h"

namespace {

using namespace fcap;
using bench::advertiser_id;
using bench::campaign_id;

constexpr std::int64_t kNowMs = 1'774'746'000'000;
constexpr std::int64_t kHourMs = 3'600'000;

Window sliding_hours(int hours) {
  return {.kind = Window::Kind::kSliding, .length = std::chrono::hours{hours}};
}

void add_rule(RuleSetSpec& spec, Scope scope, std::string target, std::uint32_t limit,
              Window window = sliding_hours(24)) {
  spec.rules.push_back({.id = "rule-" + std::to_string(spec.rules.size()),
                        .scope = scope,
                        .target = std::move(target),
                        .limit = limit,
                        .window = std::move(window)});
}

// Campaigns of as many advertisers, each with a rule of its own.
RuleSetSpec campaign_rules(std::size_t campaigns, std::uint32_t limit) {
  return bench::campaign_rules(campaigns, limit, campaigns);
}

RuleSetSpec with_user_rule(std::uint32_t limit, RuleSetSpec spec, int hours = 24) {
  add_rule(spec, Scope::kUser, "", limit, sliding_hours(hours));
  return spec;
}

ledger::Ledger ledger_of(std::size_t entries, std::size_t first_campaign, std::size_t campaigns) {
  ledger::Ledger ledger;
  for (std::size_t i = 0; i < entries; ++i) {
    ledger.merge({.time = instant_from_ms(kNowMs - static_cast<std::int64_t>(i + 1) * kHourMs / 7),
                  .campaign = ledger::id_hash(campaign_id(first_campaign + i % campaigns)),
                  .fingerprint = static_cast<std::uint32_t>(i)});
  }
  return ledger;
}

std::vector<rules::CandidateKey> candidates_of(std::size_t first, std::size_t count) {
  std::vector<rules::CandidateKey> keys;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string id = campaign_id(first + i);
    keys.push_back(rules::candidate_key({.campaign = id, .creative = {}}));
  }
  return keys;
}

void BM(benchmark::State& state, const RuleSetSpec& spec, std::size_t candidates = 10,
        std::size_t entries = 30, std::size_t reservations = 0) {
  const auto rules = RuleSet::build(spec, {}).value();
  ledger::Ledger ledger = ledger_of(entries, 0, 10);
  for (std::size_t i = 0; i < reservations; ++i) {
    ledger.merge({.event = {.time = instant_from_ms(kNowMs - 1),
                            .campaign = ledger::id_hash(campaign_id(i)),
                            .fingerprint = static_cast<std::uint32_t>(entries + i)},
                  .expires = instant_from_ms(kNowMs + 24 * kHourMs)});
  }
  const auto keys = candidates_of(0, candidates);
  std::vector<Verdict> verdicts(keys.size());
  rules::Evaluator evaluator;
  std::int64_t now_ms = kNowMs;
  // The first evaluation makes the scratch memory.
  evaluator.evaluate({*rules, ledger, instant_from_ms(now_ms), {}}, keys, verdicts);
  const std::size_t allocations_before = ledger::testing::allocations();
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): the library's idiom
    evaluator.evaluate({*rules, ledger, instant_from_ms(now_ms++), {}}, keys, verdicts);
    benchmark::DoNotOptimize(verdicts.data());
  }
  const std::size_t allocations = ledger::testing::allocations() - allocations_before;
  state.counters["allocs"] =
      static_cast<double>(allocations) / static_cast<double>(state.iterations());
}

RuleSetSpec advertiser_rules() {
  RuleSetSpec spec = campaign_rules(10, 4);
  for (std::size_t i = 0; i < 10; ++i) add_rule(spec, Scope::kAdvertiser, advertiser_id(i), 4);
  return spec;
}

RuleSetSpec calendar_rules() {
  RuleSetSpec spec = campaign_rules(10, 3);
  for (Rule& rule : spec.rules) {
    rule.window = {
        .kind = Window::Kind::kCalendar, .unit = CalendarUnit::kDay, .time_zone = "Europe/Berlin"};
  }
  return with_user_rule(100, std::move(spec));
}

RuleSetSpec five_rules_each() {
  RuleSetSpec spec = with_user_rule(500, campaign_rules(1000, 4));
  for (std::size_t i = 0; i < 1000; ++i) {
    add_rule(spec, Scope::kCampaign, campaign_id(i), 9, sliding_hours(240));
    add_rule(spec, Scope::kAdvertiser, advertiser_id(i), 4);
    add_rule(spec, Scope::kAdvertiser, advertiser_id(i), 9, sliding_hours(240));
  }
  return spec;
}

BENCHMARK_CAPTURE(BM, Headline, with_user_rule(100, campaign_rules(10, 4)));
BENCHMARK_CAPTURE(BM, Reserved, with_user_rule(100, campaign_rules(10, 5)), 10, 30, 3);
BENCHMARK_CAPTURE(BM, UserCounted, with_user_rule(29, campaign_rules(10, 4), 4));
BENCHMARK_CAPTURE(BM, Advertisers, advertiser_rules());
BENCHMARK_CAPTURE(BM, Calendar, calendar_rules());
BENCHMARK_CAPTURE(BM, Capped, with_user_rule(5, campaign_rules(10, 2), 1));

void BM_Candidates(benchmark::State& state) {
  BM(state, five_rules_each(), static_cast<std::size_t>(state.range(0)));
}
BENCHMARK(BM_Candidates)->Arg(1)->Arg(10)->Arg(100)->Arg(1000);

void BM_Entries(benchmark::State& state) {
  BM(state, with_user_rule(100, campaign_rules(10, 10'000)), 10,
     static_cast<std::size_t>(state.range(0)));
}
BENCHMARK(BM_Entries)->Arg(0)->Arg(30)->Arg(300)->Arg(2000);

void BM_RulesLoaded(benchmark::State& state) {
  const auto campaigns = static_cast<std::size_t>(state.range(0));
  const auto rules = RuleSet::build(with_user_rule(100, campaign_rules(campaigns, 4)), {}).value();
  // Other users see other campaigns: what is looked up is not in the cache.
  constexpr std::size_t kUsers = 4096;
  std::vector<ledger::Ledger> ledgers;
  std::vector<std::vector<rules::CandidateKey>> candidates;
  for (std::size_t user = 0; user < kUsers; ++user) {
    const std::size_t first = user * 7919 % campaigns;
    ledgers.push_back(ledger_of(30, first, 10));
    candidates.push_back(candidates_of(first, 10));
  }
  std::vector<Verdict> verdicts(10);
  rules::Evaluator evaluator;
  std::size_t user = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): the library's idiom
    evaluator.evaluate({*rules, ledgers[user], instant_from_ms(kNowMs), {}}, candidates[user],
                       verdicts);
    benchmark::DoNotOptimize(verdicts.data());
    user = (user + 1) % kUsers;
  }
}
BENCHMARK(BM_RulesLoaded)->Arg(1)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

}  // namespace
