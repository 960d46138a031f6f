// What searching through candidates costs where nothing passes, and records made to be slow.
//
// Workloads, each one call of a Checker over a store in memory, the record's decoding included:
//
//   Capped         check(), first_allowed(1) and a reserved page of one slot; all candidates are
//                  capped, by rules of their own and one of the user; 16 KB of compacted record
//   CraftedRecord  check() of one candidate on a record of so many KB, which nobody but a writer to
//                  Redis can make: as many live reservations as entries, of one campaign
//   CraftedPage    first_allowed(2) on a record that holds the fingerprints that it tries first

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include <fcap/checker.h>

#include "ledger/encode.h"
#include "ledger/ids.h"
#include "path/population.h"

namespace {

using namespace fcap;
using bench::campaign_id;

constexpr std::size_t kRecordBytesMax = 16'384;

Instant now() {
  return std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
}

struct Ignored final : StoreCompletion {
  void complete(const StoreOutcome& /*outcome*/) noexcept override {}
};

std::unique_ptr<Checker> checker_of(std::size_t campaigns, const std::string& record) {
  std::shared_ptr<Store> store = make_memory_store();
  Ignored ignored;
  store->append("fcap:{u}", record, Instant::max(), {}, ignored);
  CheckerOptions options;
  options.store = store;
  options.local.cached_caps_max = 0;
  options.deadline = std::chrono::seconds{60};
  auto made = Checker::create(std::move(options));
  RuleSetSpec spec = bench::campaign_rules(campaigns, 1, campaigns);
  spec.rules.push_back(
      {.id = "user",
       .scope = Scope::kUser,
       .limit = 100'000,
       .window = {.kind = Window::Kind::kSliding, .length = std::chrono::days{30}}});
  made.value()->set_rules(RuleSet::build(spec, {}).value());
  return std::move(made).value();
}

ledger::Entry entry_of(std::size_t campaign, std::uint32_t fingerprint) {
  return {.time = now() - std::chrono::milliseconds{1000 + fingerprint % 3'000'000},
          .campaign = ledger::id_hash(campaign_id(campaign)),
          .fingerprint = fingerprint};
}

enum class PageForm { kCheck, kFirstAllowed, kReservedPage };

void capped(benchmark::State& state, PageForm form) {
  const auto campaigns = static_cast<std::size_t>(state.range(0));
  ledger::Ledger ledger;
  for (std::size_t i = 0; i < campaigns; ++i)
    ledger.merge(entry_of(i, 77 * static_cast<std::uint32_t>(i)));
  const auto checker = checker_of(
      campaigns,
      compact(ledger, {}, {.trim_now = now(), .record_bytes_max = kRecordBytesMax}).record);
  const std::vector<std::string> ids = bench::campaign_ids(campaigns);
  std::vector<Candidate> ranked;
  for (const std::string& id : ids) ranked.push_back({id});
  const std::string_view slot[] = {"slot"};
  for ([[maybe_unused]] auto _ : state) {
    switch (form) {
      case PageForm::kCheck:
        benchmark::DoNotOptimize(checker->check("u", ranked));
        break;
      case PageForm::kFirstAllowed:
        benchmark::DoNotOptimize(checker->first_allowed("u", ranked, 1));
        break;
      case PageForm::kReservedPage:
        benchmark::DoNotOptimize(checker->pick({Promise::kReserved, "u", ranked, slot}));
        break;
    }
  }
}
BENCHMARK_CAPTURE(capped, Check, PageForm::kCheck)->Name("BM_Capped/check")->Arg(100)->Arg(1000);
BENCHMARK_CAPTURE(capped, FirstAllowed, PageForm::kFirstAllowed)
    ->Name("BM_Capped/first_allowed")
    ->Arg(100)
    ->Arg(1000);
BENCHMARK_CAPTURE(capped, ReservedPage, PageForm::kReservedPage)
    ->Name("BM_Capped/reserved_page")
    ->Arg(100)
    ->Arg(1000);

void BM_CraftedRecord(benchmark::State& state) {
  const auto bytes_max = static_cast<std::size_t>(state.range(0)) * 1000;
  std::string record;
  for (std::uint32_t i = 0; record.size() + 50 < bytes_max; ++i) {
    const ledger::Entry entry = entry_of(0, 2 * i);
    ledger::append_entries({&entry, 1}, record);
    const ledger::Entry reserved = entry_of(0, 2 * i + 1);
    ledger::append_reservation({.event = reserved, .expires = now() + std::chrono::hours{20}},
                               record);
  }
  const auto checker = checker_of(1, record);
  const std::string id = campaign_id(0);
  const Candidate candidates[] = {{id}};
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(checker->check("u", candidates));
  }
}
BENCHMARK(BM_CraftedRecord)->Arg(16)->Arg(250)->Arg(1000);

void BM_CraftedPage(benchmark::State& state) {
  const auto bytes_max = static_cast<std::size_t>(state.range(0)) * 1000;
  std::string record;
  for (std::uint32_t i = 0; record.size() + 30 < bytes_max; ++i) {
    ledger::Entry entry = entry_of(0, 1 + i);
    entry.time -= std::chrono::days{31};  // older than every window, and within the retention
    ledger::append_entries({&entry, 1}, record);
  }
  const auto checker = checker_of(1, record);
  const std::string id = campaign_id(0);
  const Candidate candidates[] = {{id}, {id}};
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(checker->first_allowed("u", candidates, 2));
  }
}
BENCHMARK(BM_CraftedPage)->Arg(16)->Arg(250)->Arg(1000);

}  // namespace
