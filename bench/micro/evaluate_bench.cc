// Workloads: what one check costs besides decoding, in-process; "allocs" are allocations of one.
//
//   headline      10 candidates x 2 rules (own campaign, user) on 30 entries of 10 campaigns
//   advertisers   the same with campaign and advertiser rules, each candidate of its own advertiser
//   calendar      the same with a calendar day in Europe/Berlin instead of a sliding window
//   capped        the headline, every candidate capped
//   candidates    1 to 1,000 candidates x 5 rules (campaign and advertiser twice, user)
//   rules         the headline with 1 to 1,000,000 rules loaded, a different user each time
//   entries       the headline on 0 to 2,000 entries
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <fcap/rule_set.h>

#include "ledger/ids.h"
#include "ledger/ledger.h"
#include "rules/evaluate.h"
#include "unit/ledger/counting_new.h"

namespace {

using fcap::EventType;
using fcap::Rule;
using fcap::RuleSet;
using fcap::Scope;
using fcap::Verdict;
using fcap::Window;

constexpr std::int64_t kNowMs = 1'774'746'000'000;
constexpr std::int64_t kHourMs = 3'600'000;

std::string campaign_id(std::int64_t number) {
  return "campaign-" + std::to_string(number);
}

Window sliding_hours(int hours) {
  return {.kind = Window::Kind::kSliding, .length = std::chrono::hours{hours}};
}

Rule rule(std::string id, Scope scope, std::string target, std::uint32_t limit, Window window) {
  return {.id = std::move(id),
          .scope = scope,
          .target = std::move(target),
          .limit = limit,
          .window = std::move(window)};
}

std::shared_ptr<const RuleSet> build(fcap::RuleSetSpec spec) {
  return RuleSet::build(std::move(spec), {}).value();
}

// `campaigns` campaigns of as many advertisers, each with a rule of its own, and one for the user.
fcap::RuleSetSpec spec_of(std::int64_t campaigns, std::uint32_t limit, const Window& window) {
  fcap::RuleSetSpec spec;
  for (std::int64_t i = 0; i < campaigns; ++i) {
    const std::string number = std::to_string(i);
    spec.campaigns.push_back({.id = campaign_id(i), .advertiser_id = "advertiser-" + number});
    spec.rules.push_back(rule("c" + number, Scope::kCampaign, campaign_id(i), limit, window));
  }
  return spec;
}

fcap::ledger::Ledger ledger_of(std::int64_t entries, std::int64_t first_campaign,
                               std::int64_t campaigns) {
  fcap::ledger::Ledger ledger;
  for (std::int64_t i = 0; i < entries; ++i) {
    ledger.merge({.time = fcap::instant_from_ms(kNowMs - (i + 1) * kHourMs / 7),
                  .campaign = fcap::ledger::id_hash(campaign_id(first_campaign + i % campaigns)),
                  .creative = 0,
                  .type = EventType::kImpression,
                  .fingerprint = static_cast<std::uint32_t>(i)});
  }
  return ledger;
}

std::vector<fcap::rules::CandidateKey> candidates_of(std::int64_t first, std::int64_t count) {
  std::vector<fcap::rules::CandidateKey> keys;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string id = campaign_id(first + i);
    keys.push_back(fcap::rules::candidate_key({.campaign = id, .creative = {}}));
  }
  return keys;
}

void run(benchmark::State& state, const RuleSet& rules, const fcap::ledger::Ledger& ledger,
         std::int64_t candidates) {
  const auto keys = candidates_of(0, candidates);
  std::vector<Verdict> verdicts(keys.size());
  fcap::rules::Evaluator evaluator;
  std::int64_t now_ms = kNowMs;
  // The first evaluation makes the scratch memory.
  evaluator.evaluate({rules, ledger, fcap::instant_from_ms(now_ms), {}}, keys, verdicts);
  const std::size_t allocations_before = fcap::ledger::testing::allocations();
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): the library's idiom
    evaluator.evaluate({rules, ledger, fcap::instant_from_ms(now_ms++), {}}, keys, verdicts);
    benchmark::DoNotOptimize(verdicts.data());
  }
  const std::size_t allocations = fcap::ledger::testing::allocations() - allocations_before;
  state.counters["allocs"] =
      static_cast<double>(allocations) / static_cast<double>(state.iterations());
  const auto capped = std::count_if(verdicts.begin(), verdicts.end(),
                                    [](const Verdict& verdict) { return !verdict.allowed; });
  state.counters["capped"] = static_cast<double>(capped);
  state.counters["per_candidate"] = benchmark::Counter(
      static_cast<double>(candidates),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void BM_Headline(benchmark::State& state) {
  auto spec = spec_of(10, 4, sliding_hours(24));
  spec.rules.push_back(rule("u", Scope::kUser, "", 100, sliding_hours(24)));
  run(state, *build(std::move(spec)), ledger_of(30, 0, 10), 10);
}
BENCHMARK(BM_Headline);

void BM_UserCounted(benchmark::State& state) {
  auto spec = spec_of(10, 4, sliding_hours(24));
  spec.rules.push_back(rule("u", Scope::kUser, "", 29, sliding_hours(4)));
  run(state, *build(std::move(spec)), ledger_of(30, 0, 10), 10);
}
BENCHMARK(BM_UserCounted);

void BM_Advertisers(benchmark::State& state) {
  auto spec = spec_of(10, 4, sliding_hours(24));
  for (int i = 0; i < 10; ++i) {
    const std::string number = std::to_string(i);
    spec.rules.push_back(
        rule("a" + number, Scope::kAdvertiser, "advertiser-" + number, 4, sliding_hours(24)));
  }
  run(state, *build(std::move(spec)), ledger_of(30, 0, 10), 10);
}
BENCHMARK(BM_Advertisers);

void BM_Calendar(benchmark::State& state) {
  auto spec = spec_of(10, 3,
                      {.kind = Window::Kind::kCalendar,
                       .unit = fcap::CalendarUnit::kDay,
                       .time_zone = "Europe/Berlin"});
  spec.rules.push_back(rule("u", Scope::kUser, "", 100, sliding_hours(24)));
  run(state, *build(std::move(spec)), ledger_of(30, 0, 10), 10);
}
BENCHMARK(BM_Calendar);

void BM_Capped(benchmark::State& state) {
  auto spec = spec_of(10, 2, sliding_hours(24));
  spec.rules.push_back(rule("u", Scope::kUser, "", 5, sliding_hours(1)));
  run(state, *build(std::move(spec)), ledger_of(30, 0, 10), 10);
}
BENCHMARK(BM_Capped);

void BM_Candidates(benchmark::State& state) {
  auto spec = spec_of(1000, 4, sliding_hours(24));
  spec.rules.push_back(rule("u", Scope::kUser, "", 500, sliding_hours(24)));
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(i);
    spec.rules.push_back(
        rule("d" + number, Scope::kCampaign, campaign_id(i), 9, sliding_hours(240)));
    spec.rules.push_back(
        rule("a" + number, Scope::kAdvertiser, "advertiser-" + number, 4, sliding_hours(24)));
    spec.rules.push_back(
        rule("b" + number, Scope::kAdvertiser, "advertiser-" + number, 9, sliding_hours(240)));
  }
  run(state, *build(std::move(spec)), ledger_of(30, 0, 10), state.range(0));
}
BENCHMARK(BM_Candidates)->Arg(1)->Arg(10)->Arg(100)->Arg(1000);

void BM_Entries(benchmark::State& state) {
  auto spec = spec_of(10, 10'000, sliding_hours(24));
  spec.rules.push_back(rule("u", Scope::kUser, "", 100, sliding_hours(24)));
  run(state, *build(std::move(spec)), ledger_of(state.range(0), 0, 10), 10);
}
BENCHMARK(BM_Entries)->Arg(0)->Arg(30)->Arg(300)->Arg(2000);

void BM_RulesLoaded(benchmark::State& state) {
  const std::int64_t campaigns = state.range(0);
  auto spec = spec_of(campaigns, 4, sliding_hours(24));
  spec.rules.push_back(rule("u", Scope::kUser, "", 100, sliding_hours(24)));
  const auto rules = build(std::move(spec));
  // Other users see other campaigns: what is looked up is not in the cache.
  constexpr std::int64_t kUsers = 4096;
  std::vector<fcap::ledger::Ledger> ledgers;
  std::vector<std::vector<fcap::rules::CandidateKey>> candidates;
  for (std::int64_t user = 0; user < kUsers; ++user) {
    const std::int64_t first = user * 7919 % campaigns;
    ledgers.push_back(ledger_of(30, first, 10));
    candidates.push_back(candidates_of(first, 10));
  }
  std::vector<Verdict> verdicts(10);
  fcap::rules::Evaluator evaluator;
  std::size_t user = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): the library's idiom
    evaluator.evaluate({*rules, ledgers[user], fcap::instant_from_ms(kNowMs), {}}, candidates[user],
                       verdicts);
    benchmark::DoNotOptimize(verdicts.data());
    user = (user + 1) % kUsers;
  }
}
BENCHMARK(BM_RulesLoaded)->Arg(1)->Arg(1'000)->Arg(100'000)->Arg(1'000'000);

}  // namespace
