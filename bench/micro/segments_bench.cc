// Workloads: is this user in this segment, where the segment has 10,000,000 members. A user's id is
// looked up again each time, ids come in random order, half of them are members.
//   sequential    ids 0 to 20,000,000, every other one a member
//   random32      random 32-bit numbers
//   random64      random 64-bit numbers
//   uuid          36-character ids
// BM_Memory asks no segment: one read anywhere in 128 MB while the next one waits for it, as an
// answer from a table of scattered ids has to. Printed besides the time: bytes (as the set reports
// them) and a member's share of them.
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include <fcap/segment_set.h>

#include "segments/huge_pages.h"

namespace {

using namespace fcap;

constexpr std::uint64_t kMembers = 10'000'000;
constexpr std::size_t kAsked = 1U << 16U;
/// A length of time instead would make the segment several times.
constexpr std::int64_t kAskedTimes = 4'000'000;

std::uint64_t mixed(std::uint64_t value) {
  value ^= value >> 30U;
  value *= 0xBF58476D1CE4E5B9U;
  value ^= value >> 27U;
  value *= 0x94D049BB133111EBU;
  return value ^ value >> 31U;
}

/// Ids with an even number are members.
std::string sequential(std::uint64_t number) {
  return std::to_string(number);
}
std::string random32(std::uint64_t number) {
  // A bijection of 32 bits, so that members stay members.
  auto value = static_cast<std::uint32_t>(number) * 0x9E3779B1U;
  value = (value ^ value >> 15U) * 0x85EBCA6BU;
  return std::to_string(value ^ value >> 13U);
}
std::string random64(std::uint64_t number) {
  return std::to_string(mixed(number));
}
std::string uuid(std::uint64_t number) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id = "00000000-0000-4000-8000-000000000000";
  std::uint64_t bits = mixed(number);
  for (std::size_t i = 0; i < id.size(); ++i) {
    if (id[i] == '-') continue;
    id[i] = kDigits[bits & 15U];
    bits = i == 17 ? mixed(bits + number) : bits >> 4U;
  }
  return id;
}

using IdOf = std::string (*)(std::uint64_t);

void BM_Membership(benchmark::State& state, IdOf id_of) {
  SegmentSetBuilder builder;
  for (std::uint64_t i = 0; i < kMembers; ++i) {
    if (!builder.add("vip", id_of(2 * i)).ok()) std::abort();
  }
  const auto set = std::move(builder).finish(1);
  std::mt19937_64 random(1);
  // One behind the other: a caller has just had the id in its hands.
  std::string text;
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < kAsked; ++i) {
    const std::uint64_t number = random() % (2 * kMembers);
    const std::string id = id_of(number);
    if (set->contains(0, set->look_up(id)) != (number % 2 == 0)) std::abort();
    text += id;
    begins.push_back(text.size());
  }
  std::size_t next = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): the library's idiom
    const std::string_view id(text.data() + begins[next], begins[next + 1] - begins[next]);
    benchmark::DoNotOptimize(set->contains(0, set->look_up(id)));
    next = (next + 1) % kAsked;
  }
  state.counters["bytes"] = static_cast<double>(set->memory().bytes());
  state.counters["bytes/member"] = state.counters["bytes"] / static_cast<double>(kMembers);
}
BENCHMARK_CAPTURE(BM_Membership, sequential, sequential)->Iterations(kAskedTimes);
BENCHMARK_CAPTURE(BM_Membership, random32, random32)->Iterations(kAskedTimes);
BENCHMARK_CAPTURE(BM_Membership, random64, random64)->Iterations(kAskedTimes);
BENCHMARK_CAPTURE(BM_Membership, uuid, uuid)->Iterations(kAskedTimes);

void BM_Memory(benchmark::State& state) {
  using segments::HugePageAllocator;
  constexpr std::size_t kNumbers = (std::size_t{128} << 20U) / sizeof(std::uint64_t);
  std::vector<std::uint64_t, HugePageAllocator<std::uint64_t>> numbers(kNumbers);
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] = mixed(i);
  std::uint64_t last = 1;
  std::uint64_t count = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): the library's idiom
    last = numbers[mixed(last + ++count) % kNumbers];
  }
  benchmark::DoNotOptimize(last);
}
BENCHMARK(BM_Memory);

}  // namespace
