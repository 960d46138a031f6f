// Workloads: is this user in this segment, where the segment has 10,000,000 members. A user's id is
// looked up anew each time, ids come in random order, half of them are members.
//   sequential    ids 0 to 20,000,000, every other one a member
//   random32      random 32-bit numbers
//   random64      random 64-bit numbers
//   uuid          36-character ids
// Printed besides the time: bytes (as the set reports them), a member's share of them, and heap:
// what the process really holds for the set.
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>
#include <malloc.h>

#include <fcap/segment_set.h>

namespace {

constexpr std::uint64_t kMembers = 10'000'000;
constexpr std::size_t kAsked = 1U << 16U;

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

std::size_t heap_bytes() {
  const auto info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

void membership(benchmark::State& state, IdOf id_of) {
  const std::size_t before = heap_bytes();
  fcap::SegmentSetBuilder builder;
  for (std::uint64_t i = 0; i < kMembers; ++i) {
    if (!builder.add("vip", id_of(2 * i)).ok()) std::abort();
  }
  const auto set = std::move(builder).finish(1);
  const std::size_t heap = heap_bytes() - before;
  std::mt19937_64 random(1);
  // One behind the other: a caller has just had the id in its hands.
  std::string text;
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < kAsked; ++i) {
    const std::uint64_t number = random() % (2 * kMembers);
    const std::string id = id_of(number);
    if (set->contains("vip", id) != (number % 2 == 0)) std::abort();
    text += id;
    begins.push_back(text.size());
  }
  std::size_t next = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): the library's idiom
    const std::string_view id(text.data() + begins[next], begins[next + 1] - begins[next]);
    benchmark::DoNotOptimize(set->contains(0, set->look_up(id)));
    next = (next + 1) % kAsked;
  }
  const auto bytes = static_cast<double>(set->memory().bytes());
  state.counters["bytes"] = bytes;
  state.counters["bytes/member"] = bytes / static_cast<double>(kMembers);
  state.counters["heap"] = static_cast<double>(heap);
}

void BM_Membership(benchmark::State& state, IdOf id_of) {
  membership(state, id_of);
}
BENCHMARK_CAPTURE(BM_Membership, sequential, sequential);
BENCHMARK_CAPTURE(BM_Membership, random32, random32);
BENCHMARK_CAPTURE(BM_Membership, random64, random64);
BENCHMARK_CAPTURE(BM_Membership, uuid, uuid);

}  // namespace
