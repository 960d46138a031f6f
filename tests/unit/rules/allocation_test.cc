#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "tests/unit/rules/rules_fixture.h"

// Counts every allocation of this test binary, and fails those that a test wants to fail.
namespace {
std::atomic<std::size_t> allocations{0};
std::atomic<std::ptrdiff_t> allowed{-1};  // how many more succeed; below zero: all

bool may_allocate() noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return allowed.load() < 0 || (allowed.load() > 0 && allowed.fetch_sub(1) > 0);
}
}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (void* memory = may_allocate() ? std::malloc(bytes) : nullptr) return memory;  // NOLINT
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return may_allocate() ? std::malloc(bytes) : nullptr;  // NOLINT: this is the allocator
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
namespace allocation_test {

using namespace std::chrono_literals;  // NOLINT: durations read as in the rules

constexpr std::string_view kUser = "a user with a long name, not a number";

// A scene in which every kind of memory is needed: all scopes, windows, segments and lives.
class BusyScene {
 public:
  BusyScene() {
    for (int i = 0; i < 10; ++i) {
      scene_.campaign({.id = "c" + std::to_string(i),
                       .advertiser_id = "a" + std::to_string(i % 3),
                       .groups = {"g1", "g2"}});
      keys.push_back(candidate_key({"c" + std::to_string(i), "k1"}));
    }
    add_rules();
    for (int i = 0; i < 60; ++i) {
      scene_.event("c" + std::to_string(i % 10), 1'000'000 + i * 60'000, "k1");
    }
    SegmentSetBuilder builder;
    EXPECT_TRUE(builder.add("stored", kUser).ok());
    stored_ = std::move(builder).finish(1);
    verdicts.resize(keys.size());
  }

  void evaluate(Evaluator& evaluator, std::int64_t now_ms) {
    evaluator.evaluate({.rules = *scene_.rules(),
                        .ledger = scene_.ledger(),
                        .now = instant_from_ms(now_ms),
                        .segments = segments_,
                        .stored = stored_.get(),
                        .user = kUser},
                       keys, verdicts);
  }

  std::vector<CandidateKey> keys;
  std::vector<Verdict> verdicts;

 private:
  void add_rules() {
    scene_.rule({.id = "d", .target = "*", .limit = 2, .window = sliding(24h)});
    scene_.rule({.id = "s", .target = "c1", .limit = 1, .window = fixed(8h), .segment = "vip"});
    scene_.rule({.id = "t", .target = "c2", .limit = 1, .window = fixed(8h), .segment = "stored"});
    scene_.rule({.id = "u", .scope = Scope::kUser, .limit = 20, .window = fixed(24h)});
    scene_.rule(
        {.id = "k", .scope = Scope::kCreative, .target = "*", .limit = 1, .window = lifetime()});
    scene_.rule({.id = "a",
                 .scope = Scope::kAdvertiser,
                 .target = "*",
                 .limit = 3,
                 .window = calendar(CalendarUnit::kDay, "Europe/Berlin")});
    scene_.rule({.id = "g",
                 .scope = Scope::kGroup,
                 .target = "g1",
                 .limit = 9,
                 .window = calendar(CalendarUnit::kMonth),
                 .end = instant_from_ms(90'000'000)});
  }

  Scene scene_;
  std::vector<std::string_view> segments_{"vip", "unknown"};
  std::shared_ptr<const SegmentSet> stored_;
};

TEST(Allocation, NoneInEvaluateOnceItIsWarm) {
  BusyScene scene;
  Evaluator evaluator;
  scene.evaluate(evaluator, 5'000'000);
  EXPECT_FALSE(scene.verdicts[0].allowed);
  const std::size_t before = allocations.load();
  for (std::int64_t now_ms = 5'000'000; now_ms < 95'000'000; now_ms += 999'983) {
    scene.evaluate(evaluator, now_ms);
  }
  EXPECT_EQ(allocations.load() - before, 0U);
  EXPECT_GT(before, 0U) << "the counter works";
}

TEST(Allocation, RunningOutOfMemoryThrowsAndTheEvaluatorCanBeAskedAgain) {
  BusyScene scene;
  Evaluator well;
  scene.evaluate(well, 5'000'000);
  const std::vector<Verdict> expected = scene.verdicts;
  std::ptrdiff_t failed = 0;
  for (bool whole = false; !whole; ++failed) {
    Evaluator evaluator;
    allowed = failed;
    try {
      scene.evaluate(evaluator, 5'000'000);
      whole = true;
    } catch (const std::bad_alloc&) {
    }
    allowed = -1;
    if (!whole) {
      (void)evaluator.capped_until(0);
      scene.evaluate(evaluator, 5'000'000);
    }
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(scene.verdicts[i].allowed, expected[i].allowed) << "allocation " << failed;
      EXPECT_EQ(scene.verdicts[i].rule_id, expected[i].rule_id) << "allocation " << failed;
      EXPECT_EQ(scene.verdicts[i].eligible_at, expected[i].eligible_at) << "allocation " << failed;
    }
  }
  EXPECT_GT(failed, 6) << "some allocations have failed";
}

}  // namespace allocation_test
}  // namespace fcap::rules
