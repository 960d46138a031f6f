#include "checker/thread_slot.h"

#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "checker/counters.h"
#include "checker/scratch_pool.h"

namespace fcap::checker {
namespace thread_slot_test {

constexpr std::size_t kMoreThanSlots = kThreadSlots + 20;

TEST(ThreadSlot, NoTwoLivingThreadsHaveTheSame) {
  std::vector<std::size_t> slots(kMoreThanSlots);
  std::barrier all_have_asked(static_cast<std::ptrdiff_t>(kMoreThanSlots));
  std::vector<std::thread> threads;
  for (std::size_t& slot : slots) {
    threads.emplace_back([&] {
      slot = own_thread_slot();
      EXPECT_EQ(own_thread_slot(), slot);
      all_have_asked.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::multiset<std::size_t> found(slots.begin(), slots.end());
  found.erase(kNoSlot);
  for (const std::size_t slot : found) EXPECT_EQ(found.count(slot), 1U) << slot;
  EXPECT_GT(found.size(), 0U);
  EXPECT_LE(found.size(), kThreadSlots);
}

TEST(ThreadSlot, IsUsedAgainWhenItsThreadHasEnded) {
  for (std::size_t i = 0; i < 2 * kThreadSlots; ++i) {
    std::thread([] { EXPECT_LT(own_thread_slot(), kThreadSlots); }).join();
  }
}

// A destructor of the host's may run after the slot was given back, and check.
TEST(ThreadSlot, AThreadThatEndsHasNone) {
  struct AsksAtTheEnd {
    std::size_t* seen = nullptr;
    ~AsksAtTheEnd() {
      if (seen != nullptr) *seen = own_thread_slot();
    }
  };
  std::size_t seen = 0;
  std::thread([&seen] {
    thread_local AsksAtTheEnd last;  // made first, so it goes last
    last.seen = &seen;
    EXPECT_LT(own_thread_slot(), kThreadSlots);
  }).join();
  EXPECT_EQ(seen, kNoSlot);
}

// Threads with a slot, threads without one, and threads that take over a slot.
TEST(Counters, LoseNothing) {
  constexpr int kRounds = 3;
  constexpr std::uint64_t kEach = 2'000;
  Counters counters;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kMoreThanSlots; ++i) {
      threads.emplace_back([&counters] {
        for (std::uint64_t n = 0; n < kEach; ++n) {
          const CountedCall inside(counters);
          counters.add(CheckerCounter::candidates, 10);
        }
      });
    }
    while (!counters.all_ended()) std::this_thread::yield();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(counters.sum(CheckerCounter::candidates), kRounds * kMoreThanSlots * kEach * 10);
  EXPECT_TRUE(counters.all_ended());
  EXPECT_TRUE(counters.all_submitted());
}

TEST(ScratchPool, ACallInsideAnotherHasItsOwn) {
  ScratchPool scratches;
  const ScratchPool::HeldScratch outer(scratches);
  {
    const ScratchPool::HeldScratch inner(scratches);
    EXPECT_NE(&*inner, &*outer);
  }
  const ScratchPool::HeldScratch again(scratches);
  EXPECT_NE(&*again, &*outer);
}

TEST(ScratchPool, NoTwoThreadsHaveTheSame) {
  ScratchPool scratches;
  std::array<std::atomic<const Scratch*>, kMoreThanSlots> held{};
  std::barrier all_hold_one(static_cast<std::ptrdiff_t>(kMoreThanSlots));
  std::vector<std::thread> threads;
  for (auto& mine : held) {
    threads.emplace_back([&] {
      const ScratchPool::HeldScratch scratch(scratches);
      mine = &*scratch;
      all_hold_one.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::set<const Scratch*>(held.begin(), held.end()).size(), kMoreThanSlots);
}

}  // namespace thread_slot_test
}  // namespace fcap::checker
