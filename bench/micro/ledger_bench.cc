// Decoding, merging and compacting a user's record. One record in a row stays in the caches and in
// the branch predictor; the "mixed" workloads walk through many records of different shapes, as a
// server does.
//
// Workloads: campaigns x entries each, appended entries behind the compacted runs.
#include <random>

#include <benchmark/benchmark.h>

#include "ledger/encode.h"

namespace fcap::ledger {
namespace {

constexpr Instant kStart = instant_from_ms(1'700'000'000'000);

std::uint64_t campaign_hash(std::uint64_t campaign) {
  return (1 + campaign) * 0x9E3779B97F4AULL & 0xFFFFFFFFFFFFULL;
}

Entry random_entry(std::mt19937_64& random, std::size_t campaigns, bool creatives) {
  return {.time = kStart + std::chrono::milliseconds(random() % 2'764'800'000),
          .campaign = campaign_hash(random() % campaigns),
          .creative = creatives ? 1 + random() % 20 : 0,
          .fingerprint = static_cast<std::uint32_t>(random())};
}

// As the arguments say: campaigns, entries of each, entries in the tail, whether with creatives.
std::string record_of(const benchmark::State& state) {
  const auto campaigns = static_cast<std::size_t>(state.range(0));
  const auto each = static_cast<std::size_t>(state.range(1));
  const bool creatives = state.range(3) != 0;
  std::mt19937_64 random(1);
  Ledger ledger;
  for (std::size_t i = 0; i < campaigns * each; ++i) {
    Entry entry = random_entry(random, campaigns, creatives);
    entry.campaign = campaign_hash(i / each);
    ledger.merge(entry);
  }
  std::string record = compact(ledger, {}, {.trim_now = {}, .record_bytes_max = 1 << 20}).record;
  std::vector<Entry> entries;
  for (auto left = state.range(2); left > 0; --left) {
    entries.push_back(random_entry(random, campaigns, creatives));
  }
  append_entries(entries, record);
  return record;
}

void BM_Decode(benchmark::State& state) {
  const std::string record = record_of(state);
  Ledger ledger;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(ledger.decode(record));
    benchmark::DoNotOptimize(ledger.times().data());
  }
  state.counters["bytes"] = static_cast<double>(record.size());
}
BENCHMARK(BM_Decode)
    ->ArgNames({"campaigns", "each", "tail", "creatives"})
    ->Args({1, 1, 0, 0})
    ->Args({10, 3, 0, 0})
    ->Args({10, 3, 0, 1})
    ->Args({10, 3, 1, 0})
    ->Args({10, 3, 6, 0})
    ->Args({10, 3, 13, 0})
    ->Args({10, 3, 40, 0})
    ->Args({100, 10, 0, 0})
    ->Args({100, 10, 10, 0})
    ->Args({1, 2000, 0, 0})
    ->Args({2000, 1, 0, 0});

// Users with 1 to 20 campaigns of 1 to 5 entries; `tail` entries at most.
std::vector<std::string> mixed_records(std::size_t tail) {
  std::mt19937_64 random(1);
  std::vector<std::string> records;
  for (int i = 0; i < 2000; ++i) {
    std::vector<Entry> entries;
    const std::size_t campaigns = 1 + random() % 20;
    for (std::size_t campaign = 0; campaign < campaigns; ++campaign) {
      const std::uint64_t hash = random() & 0xFFFFFFFFFFFFULL;
      for (std::size_t each = 1 + random() % 5; each > 0; --each) {
        entries.push_back(random_entry(random, 1, false));
        entries.back().campaign = hash;
      }
    }
    Ledger ledger;
    for (const Entry& entry : entries) ledger.merge(entry);
    std::string record = compact(ledger, {}, {}).record;
    for (std::size_t added = tail == 0 ? 0 : random() % (tail + 1); added > 0; --added) {
      Entry entry = entries[random() % entries.size()];
      entry.fingerprint = static_cast<std::uint32_t>(random());
      entry.time = kStart + std::chrono::days{32};
      append_entries({&entry, 1}, record);
    }
    records.push_back(std::move(record));
  }
  return records;
}

void BM_DecodeMixed(benchmark::State& state) {
  const auto records = mixed_records(static_cast<std::size_t>(state.range(0)));
  Ledger ledger;
  std::size_t next = 0;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(ledger.decode(records[next]));
    next = next + 1 == records.size() ? 0 : next + 1;
  }
}
BENCHMARK(BM_DecodeMixed)->ArgName("tail")->Arg(0)->Arg(6)->Arg(13);

void BM_Compact(benchmark::State& state) {
  const std::string record = record_of(state);
  Ledger ledger;
  for ([[maybe_unused]] auto _ : state) {
    benchmark::DoNotOptimize(ledger.decode(record));
    benchmark::DoNotOptimize(compact(ledger, record, {.trim_now = {}}).record.data());
  }
}
BENCHMARK(BM_Compact)
    ->ArgNames({"campaigns", "each", "tail", "creatives"})
    ->Args({10, 3, 13, 0})
    ->Args({10, 3, 13, 1})
    ->Args({100, 20, 200, 0});

}  // namespace
}  // namespace fcap::ledger
