// Decoding, merging and compacting a user's record. One record in a row stays in the caches and in
// the branch predictor; the "mixed" workloads walk through many records of different shapes, as a
// server does.
//
// Workloads: campaigns x entries each, appended entries behind the compacted runs.
#include <random>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "ledger/encode.h"
#include "ledger/ledger.h"

namespace fcap::ledger {
namespace {

constexpr Instant kStart = instant_from_ms(1'700'000'000'000);

struct Workload {
  std::size_t campaigns;
  std::size_t each;
  std::size_t tail;
  bool creatives;
};

Entry random_entry(std::mt19937_64& random, std::size_t campaigns, bool creatives) {
  return {.time = kStart + std::chrono::milliseconds(random() % 2'764'800'000),
          .campaign = (1 + random() % campaigns) * 0x9E3779B97F4AULL & 0xFFFFFFFFFFFFULL,
          .creative = creatives ? 1 + random() % 20 : 0,
          .fingerprint = static_cast<std::uint32_t>(random())};
}

std::string record_of(std::mt19937_64& random, const Workload& workload) {
  std::vector<Entry> entries;
  for (std::size_t i = 0; i < workload.campaigns * workload.each; ++i) {
    Entry entry = random_entry(random, workload.campaigns, workload.creatives);
    entry.campaign = (1 + i / workload.each) * 0x9E3779B97F4AULL & 0xFFFFFFFFFFFFULL;
    entries.push_back(entry);
  }
  std::string tail;
  append_entries(entries, tail);
  Ledger ledger;
  if (ledger.decode(tail) != DecodeCode::kOk) std::abort();
  std::string record = compact(ledger, {}, {.trim_now = {}, .record_bytes_max = 1 << 20}).record;
  entries.clear();
  for (std::size_t i = 0; i < workload.tail; ++i) {
    entries.push_back(random_entry(random, workload.campaigns, workload.creatives));
  }
  append_entries(entries, record);
  return record;
}

Workload workload_of(const benchmark::State& state) {
  return {.campaigns = static_cast<std::size_t>(state.range(0)),
          .each = static_cast<std::size_t>(state.range(1)),
          .tail = static_cast<std::size_t>(state.range(2)),
          .creatives = state.range(3) != 0};
}

void BM_Decode(benchmark::State& state) {
  std::mt19937_64 random(1);
  const std::string record = record_of(random, workload_of(state));
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
  std::mt19937_64 random(1);
  const std::string record = record_of(random, workload_of(state));
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
