#include "updater/pipeline/offset_tracker.h"

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace fcap::updater {
namespace offset_tracker_test {

TEST(OffsetTracker, StandsAtItsStartUntilTheFirstRangeIsDone) {
  OffsetTracker tracker(100);
  EXPECT_EQ(tracker.low_water(), 100);
  const auto ticket = tracker.begin(100, 110);
  EXPECT_EQ(tracker.low_water(), 100);
  EXPECT_EQ(tracker.next_offset(), 110);
  tracker.complete(ticket);
  EXPECT_EQ(tracker.low_water(), 110);
  EXPECT_EQ(tracker.next_offset(), 110);
}

TEST(OffsetTracker, ARangeThatIsNotDoneHoldsUpAllBehindIt) {
  OffsetTracker tracker(0);
  const auto first = tracker.begin(0, 10);
  const auto second = tracker.begin(10, 20);
  const auto third = tracker.begin(20, 30);
  tracker.complete(third);
  tracker.complete(second);
  EXPECT_EQ(tracker.low_water(), 0);
  tracker.complete(first);
  EXPECT_EQ(tracker.low_water(), 30);
}

TEST(OffsetTracker, OffsetsThatDoNotExistHoldNothingUp) {
  OffsetTracker tracker(0);
  const auto first = tracker.begin(5, 10);
  const auto second = tracker.begin(90, 91);
  EXPECT_EQ(tracker.low_water(), 0);
  tracker.complete(first);
  EXPECT_EQ(tracker.low_water(), 10);
  tracker.complete(second);
  EXPECT_EQ(tracker.low_water(), 91);
}

TEST(OffsetTracker, WithoutAStartTheFirstRangeIsTheStart) {
  OffsetTracker tracker;
  EXPECT_EQ(tracker.low_water(), std::nullopt);
  const auto ticket = tracker.begin(42, 43);
  EXPECT_EQ(tracker.low_water(), 42);
  tracker.complete(ticket);
  EXPECT_EQ(tracker.low_water(), 43);
}

TEST(OffsetTracker, AgreesWithAPlainReferenceUnderAnyOrderOfCompletion) {
  const std::uint64_t seed = test_seed(4711);
  SCOPED_TRACE(::testing::Message() << "FCAP_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    struct Open {
      std::int64_t first;
      std::int64_t end;
      OffsetTracker::Ticket ticket;
    };
    OffsetTracker tracker(0);
    std::vector<Open> open;
    std::int64_t next = 0;
    std::int64_t finished_up_to = 0;  // where reading stands when nothing is open
    for (int step = 0; step < 100; ++step) {
      if (open.empty() || random() % 2 == 0) {
        const auto first = next + static_cast<std::int64_t>(random() % 3);
        next = first + 1 + static_cast<std::int64_t>(random() % 5);
        open.push_back({first, next, tracker.begin(first, next)});
      } else {
        const std::size_t pick = random() % open.size();
        tracker.complete(open[pick].ticket);
        if (open.size() == 1) finished_up_to = next;
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
      }
      // Nothing open may lie below the low-water mark, and it must not stay behind for nothing.
      const std::int64_t low = tracker.low_water().value_or(-1);
      if (open.empty()) {
        ASSERT_EQ(low, finished_up_to);
      } else {
        ASSERT_LE(low, open.front().first);
      }
    }
  }
}

TEST(OffsetTrackerDeathTest, ARangeIsCompleteOnce) {
  OffsetTracker tracker(0);
  const auto first = tracker.begin(0, 10);
  const auto second = tracker.begin(10, 20);
  tracker.complete(second);
  EXPECT_EXIT(tracker.complete(second), ::testing::KilledBySignal(SIGABRT), "");
  tracker.complete(first);
  EXPECT_EXIT(tracker.complete(first), ::testing::KilledBySignal(SIGABRT), "");
}

TEST(OffsetTrackerDeathTest, OffsetsAreTakenInAscendingOrder) {
  OffsetTracker tracker(100);
  EXPECT_EXIT(tracker.begin(99, 110), ::testing::KilledBySignal(SIGABRT), "");
}

}  // namespace offset_tracker_test
}  // namespace fcap::updater
