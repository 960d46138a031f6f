#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "tests/unit/rules/rules_fixture.h"

/// Counts every allocation of this test binary.
namespace {
std::atomic<std::size_t> allocations{0};
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(bytes)) return memory;  // NOLINT: this is the allocator
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);  // NOLINT: as above
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}  // NOLINT: as above
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}  // NOLINT

[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  std::free(memory);  // NOLINT: as above
}

namespace fcap::rules {
namespace {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

TEST(Allocation, NoneInEvaluateOnceItIsWarm) {
  Scene scene;
  for (int i = 0; i < 10; ++i) {
    scene.campaign({.id = "c" + std::to_string(i),
                    .advertiser_id = "a" + std::to_string(i % 3),
                    .groups = {"g1", "g2"}});
  }
  scene.rule({.id = "d", .target = "*", .limit = 2, .window = sliding(24h)});
  scene.rule({.id = "s", .target = "c1", .limit = 1, .window = fixed(8h), .segment = "vip"});
  scene.rule({.id = "t", .target = "c2", .limit = 1, .window = fixed(8h), .segment = "stored"});
  scene.rule({.id = "u", .scope = Scope::kUser, .limit = 20, .window = fixed(24h)});
  scene.rule(
      {.id = "k", .scope = Scope::kCreative, .target = "*", .limit = 1, .window = lifetime()});
  scene.rule({.id = "a",
              .scope = Scope::kAdvertiser,
              .target = "*",
              .limit = 3,
              .window = calendar(CalendarUnit::kDay, "Europe/Berlin")});
  scene.rule({.id = "g",
              .scope = Scope::kGroup,
              .target = "g1",
              .limit = 9,
              .window = calendar(CalendarUnit::kMonth),
              .end = instant_from_ms(90'000'000)});
  for (int i = 0; i < 60; ++i)
    scene.event("c" + std::to_string(i % 10), 1'000'000 + i * 60'000, "k1");
  std::vector<CandidateKey> keys;
  keys.reserve(10);
  for (int i = 0; i < 10; ++i) keys.push_back(candidate_key({"c" + std::to_string(i), "k1"}));
  std::vector<Verdict> verdicts(keys.size());
  const std::string_view segments[] = {"vip", "unknown"};
  SegmentSetBuilder builder;
  ASSERT_TRUE(builder.add("stored", "a user with a long name, not a number").ok());
  const auto stored = std::move(builder).finish(1);
  Evaluator evaluator;
  const auto evaluate = [&](std::int64_t now_ms) {
    evaluator.evaluate({.rules = *scene.rules(),
                        .ledger = scene.ledger(),
                        .now = instant_from_ms(now_ms),
                        .segments = segments,
                        .stored = stored.get(),
                        .user = "a user with a long name, not a number"},
                       keys, verdicts);
  };
  evaluate(5'000'000);
  EXPECT_FALSE(verdicts[0].allowed);
  const std::size_t before = allocations.load();
  for (std::int64_t now_ms = 5'000'000; now_ms < 95'000'000; now_ms += 999'983) evaluate(now_ms);
  EXPECT_EQ(allocations.load() - before, 0U);
  EXPECT_GT(before, 0U) << "the counter works";
}

}  // namespace
}  // namespace fcap::rules
