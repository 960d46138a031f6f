#include "updater/compaction/written_users.h"

#include <algorithm>
#include <cstdlib>
#include <list>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace fcap::updater {
namespace written_users_test {

using namespace std::chrono_literals;

using Verdict = WrittenUsers::NoteOutcome;

constexpr WrittenUsers::Clock::time_point kStart{1000s};

TEST(WrittenUsers, ATailIsDueAboveTheMinimumAndTheShare) {
  WrittenUsers users({.users_max = 10, .tail_bytes_min = 100, .tail_share = 0.25});
  // A base of 200: a quarter is less than the minimum.
  EXPECT_EQ(users.note("a", 250, 50, kStart), Verdict::kRemembered);
  EXPECT_EQ(users.note("a", 300, 50, kStart), Verdict::kRemembered);
  EXPECT_EQ(users.note("a", 301, 1, kStart), Verdict::kDue);
  EXPECT_EQ(users.size(), 0U);
  // A base of 1000: a quarter is 250.
  EXPECT_EQ(users.note("b", 1250, 250, kStart), Verdict::kRemembered);
  EXPECT_EQ(users.note("b", 1251, 1, kStart), Verdict::kDue);
}

TEST(WrittenUsers, ARecordFarAboveTheBoundIsDueAtOnce) {
  WrittenUsers users({.users_max = 10,
                      .tail_bytes_min = 256,
                      .tail_share = 0.25,
                      .record_bytes_max = std::size_t{16} * 1024});
  EXPECT_EQ(users.note("bot", std::size_t{20} * 1024, 20, kStart), Verdict::kRemembered);
  EXPECT_EQ(users.note("bot", 20 * 1024 + 1, 1, kStart), Verdict::kDue);
}

TEST(WrittenUsers, ARecordThatSomethingElseCompactedStartsAnew) {
  WrittenUsers users({.users_max = 10, .tail_bytes_min = 100});
  EXPECT_EQ(users.note("a", 90, 90, kStart), Verdict::kRemembered);
  EXPECT_EQ(users.note("a", 50, 20, kStart), Verdict::kRemembered);
  EXPECT_EQ(users.note("a", 120, 70, kStart), Verdict::kRemembered);
  EXPECT_EQ(users.note("a", 131, 11, kStart), Verdict::kDue);
}

TEST(WrittenUsers, QuietUsersComeOutOldestWriteFirst) {
  WrittenUsers users({.users_max = 10});
  users.note("a", 20, 20, kStart);
  users.note("b", 20, 20, kStart + 1s);
  users.note("c", 20, 20, kStart + 2s);
  users.note("a", 40, 20, kStart + 3s);
  std::string key;
  EXPECT_FALSE(users.take_quiet(kStart, key));
  ASSERT_TRUE(users.take_quiet(kStart + 2s, key));
  EXPECT_EQ(key, "b");
  ASSERT_TRUE(users.take_quiet(kStart + 2s, key));
  EXPECT_EQ(key, "c");
  EXPECT_FALSE(users.take_quiet(kStart + 2s, key));
  ASSERT_TRUE(users.take_quiet(kStart + 3s, key));
  EXPECT_EQ(key, "a");
  EXPECT_EQ(users.size(), 0U);
}

TEST(WrittenUsers, AFullTableTakesNoNewUsers) {
  WrittenUsers users({.users_max = 2});
  EXPECT_EQ(users.note("a", 20, 20, kStart), Verdict::kRemembered);
  EXPECT_EQ(users.note("b", 20, 20, kStart), Verdict::kRemembered);
  EXPECT_EQ(users.note("c", 20, 20, kStart), Verdict::kFull);
  EXPECT_EQ(users.note("a", 40, 20, kStart), Verdict::kRemembered);
  std::string key;
  ASSERT_TRUE(users.take_quiet(kStart, key));
  EXPECT_EQ(users.note("c", 20, 20, kStart), Verdict::kRemembered);
}

TEST(WrittenUsers, BehavesLikeAListUnderRandomUse) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("FCAP_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  WrittenUsers users({.users_max = 3'000, .tail_bytes_min = 60, .tail_share = 0});
  struct Known {
    std::string key;
    std::size_t tail;
    WrittenUsers::Clock::time_point last;
  };
  std::list<Known> known;  // the oldest write first
  auto now = kStart;
  for (int step = 0; step < 40'000; ++step) {
    now += std::chrono::milliseconds{random() % 3};
    if (random() % 8 != 0) {
      const std::string key = "user" + std::to_string(random() % 5'000);
      const auto found = std::ranges::find(known, key, &Known::key);
      const std::size_t tail = (found == known.end() ? 0 : found->tail) + 20;
      auto expected = Verdict::kRemembered;
      if (found == known.end() && known.size() == 3'000) {
        expected = Verdict::kFull;
      } else {
        if (found != known.end()) known.erase(found);
        if (tail > 60) {
          expected = Verdict::kDue;
        } else {
          known.push_back({key, tail, now});
        }
      }
      ASSERT_EQ(users.note(key, 1'000, 20, now), expected) << step;
    } else {
      const auto until = now - std::chrono::milliseconds{random() % 4'000};
      std::string key;
      const bool quiet = !known.empty() && known.front().last <= until;
      ASSERT_EQ(users.take_quiet(until, key), quiet) << step;
      if (quiet) {
        ASSERT_EQ(key, known.front().key) << step;
        known.pop_front();
      }
    }
    ASSERT_EQ(users.size(), known.size());
  }
}

}  // namespace written_users_test
}  // namespace fcap::updater
