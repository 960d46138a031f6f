// Workloads: is this user in this segment, where the segment has 10,000,000 members. A user's id is
// looked up again each time, ids come in random order, half of them are members.
//   sequential    ids 0 to 20,000,000, every other one a member
//   random32      random 32-bit numbers
//   random64      random 64-bit numbers
//   uuid          36-character ids
// BM_Roaring asks a plain CRoaring bitmap (Roaring64Map) the same, its number read from the same
// text. BM_Memory asks no segment: one read anywhere in 128 MB while the next one waits for it, as
// an answer from a table of scattered ids has to. Printed besides the time: bytes, as the set
// reports them, and a member's share of them.
#include <charconv>
#include <random>

#include <benchmark/benchmark.h>
#include <roaring/roaring64map.hh>

#include <fcap/segment_set.h>

#include "path/population.h"
#include "segments/huge_pages.h"

namespace {

using namespace fcap;

constexpr std::uint64_t kMembers = 10'000'000;
constexpr std::size_t kAsked = 1U << 16U;
// A length of time instead would make the segment several times.
constexpr std::int64_t kAskedTimes = 4'000'000;

// Ids with an even number are members.
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
  return std::to_string(bench::mixed(number));
}
std::string uuid(std::uint64_t number) {
  return bench::uuid(bench::kUserIds, number);
}

using IdOf = std::string (*)(std::uint64_t);

std::uint64_t number_of(std::string_view id) {
  std::uint64_t number = 0;
  std::from_chars(id.data(), id.data() + id.size(), number);
  return number;
}

// Times `is_member`, which gets an id, and reports what its set takes.
template <class IsMember>
void ask(benchmark::State& state, IdOf id_of, double bytes, IsMember is_member) {
  std::mt19937_64 random(1);
  // One behind the other: a caller has just had the id in its hands.
  std::string text;
  std::vector<std::size_t> begins{0};
  for (std::size_t i = 0; i < kAsked; ++i) {
    const std::uint64_t number = random() % (2 * kMembers);
    const std::string id = id_of(number);
    if (is_member(id) != (number % 2 == 0)) std::abort();
    text += id;
    begins.push_back(text.size());
  }
  std::size_t next = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): the library's idiom
    const std::string_view id(text.data() + begins[next], begins[next + 1] - begins[next]);
    benchmark::DoNotOptimize(is_member(id));
    next = (next + 1) % kAsked;
  }
  state.counters["bytes"] = bytes;
  state.counters["bytes/member"] = bytes / static_cast<double>(kMembers);
}

void BM_Membership(benchmark::State& state, IdOf id_of) {
  SegmentSetBuilder builder;
  for (std::uint64_t i = 0; i < kMembers; ++i) {
    if (!builder.add("vip", id_of(2 * i)).ok()) std::abort();
  }
  const auto set = std::move(builder).finish(1);
  ask(state, id_of, static_cast<double>(set->memory().bytes()),
      [&set](std::string_view id) { return set->contains(0, set->look_up(id)); });
}

void BM_Roaring(benchmark::State& state, IdOf id_of) {
  Roaring64Map set;
  for (std::uint64_t i = 0; i < kMembers; ++i) set.add(number_of(id_of(2 * i)));
  set.runOptimize();
  set.shrinkToFit();
  ask(state, id_of, static_cast<double>(set.getSizeInBytes()),
      [&set](std::string_view id) { return set.contains(number_of(id)); });
}
BENCHMARK_CAPTURE(BM_Membership, sequential, sequential)->Iterations(kAskedTimes);
BENCHMARK_CAPTURE(BM_Membership, random32, random32)->Iterations(kAskedTimes);
BENCHMARK_CAPTURE(BM_Membership, random64, random64)->Iterations(kAskedTimes);
BENCHMARK_CAPTURE(BM_Membership, uuid, uuid)->Iterations(kAskedTimes);
BENCHMARK_CAPTURE(BM_Roaring, sequential, sequential)->Iterations(kAskedTimes);
BENCHMARK_CAPTURE(BM_Roaring, random32, random32)->Iterations(kAskedTimes);
BENCHMARK_CAPTURE(BM_Roaring, random64, random64)->Iterations(kAskedTimes);

void BM_Memory(benchmark::State& state) {
  using segments::HugePageAllocator;
  constexpr std::size_t kNumbers = (std::size_t{128} << 20U) / sizeof(std::uint64_t);
  std::vector<std::uint64_t, HugePageAllocator<std::uint64_t>> numbers(kNumbers);
  for (std::size_t i = 0; i < kNumbers; ++i) numbers[i] = bench::mixed(i);
  std::uint64_t last = 1;
  std::uint64_t count = 0;
  for (auto _ : state) {  // NOLINT(clang-analyzer-deadcode.DeadStores): the library's idiom
    last = numbers[bench::mixed(last + ++count) % kNumbers];
  }
  benchmark::DoNotOptimize(last);
}
BENCHMARK(BM_Memory);

}  // namespace
