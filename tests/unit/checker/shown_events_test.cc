#include "checker/shown_events.h"

#include <string>

#include <gtest/gtest.h>

#include "fixtures.h"

namespace fcap::checker_test {
namespace shown_events_test {

using checker::ShownEvents;

constexpr ShownEvents::Clock::time_point kStart{std::chrono::hours(1)};

ledger::Entry impression(std::uint32_t fingerprint, Instant time = kNow) {
  return {.time = time,
          .campaign = ledger::id_hash("c1"),
          .creative = 0,
          .type = EventType::kImpression,
          .fingerprint = fingerprint};
}

// How many entries a user's empty ledger gets.
std::size_t remembered(ShownEvents& shown, std::string_view user,
                       ShownEvents::Clock::time_point now = kStart) {
  ledger::Ledger ledger;
  return shown.merge_into(user, now, ledger).unconfirmed;
}

TEST(ShownEvents, CountForTheirUserAlone) {
  ShownEvents shown({.events_max = 100, .kept_for = 60s});
  EXPECT_EQ(shown.note("u1", impression(1), kStart), 0U);
  EXPECT_EQ(shown.note("u1", impression(2), kStart), 0U);
  EXPECT_EQ(remembered(shown, "u1"), 2U);
  EXPECT_EQ(remembered(shown, "u2"), 0U);
}

TEST(ShownEvents, NotedTwiceCountsOnceAtTheLaterTime) {
  ShownEvents shown({.events_max = 100, .kept_for = 60s});
  shown.note("u1", impression(1, kNow), kStart);
  shown.note("u1", impression(1, kNow - 5s), kStart);
  ledger::Ledger ledger;
  EXPECT_EQ(shown.merge_into("u1", kStart, ledger).unconfirmed, 1U);
  ASSERT_EQ(ledger.size(), 1U);
  EXPECT_EQ(ledger.times().front(), kNow);
}

TEST(ShownEvents, AreForgottenOnceTheLedgerHasThem) {
  ShownEvents shown({.events_max = 100, .kept_for = 60s});
  shown.note("u1", impression(1), kStart);
  ledger::Ledger ledger;
  ledger.merge(impression(1, kNow - 2s));  // the producer's clock was behind
  const ShownEvents::Merged merged = shown.merge_into("u1", kStart, ledger);
  EXPECT_EQ(merged.confirmed, 1U);
  EXPECT_EQ(merged.unconfirmed, 0U);
  ASSERT_EQ(ledger.size(), 1U);
  EXPECT_EQ(ledger.times().front(), kNow - 2s);
  EXPECT_EQ(shown.size(), 0U);
}

TEST(ShownEvents, AClickWithTheSameIdConfirmsNothing) {
  ShownEvents shown({.events_max = 100, .kept_for = 60s});
  shown.note("u1", impression(1), kStart);
  ledger::Ledger ledger;
  ledger::Entry click = impression(1);
  click.type = EventType::kClick;
  ledger.merge(click);
  EXPECT_EQ(shown.merge_into("u1", kStart, ledger).unconfirmed, 1U);
  EXPECT_EQ(ledger.size(), 2U);
}

TEST(ShownEvents, ExpireWhenTheirTimeIsOver) {
  ShownEvents shown({.events_max = 100, .kept_for = 60s});
  shown.note("u1", impression(1), kStart);
  EXPECT_EQ(remembered(shown, "u1", kStart + 60s - 1ns), 1U);
  EXPECT_EQ(remembered(shown, "u1", kStart + 60s), 0U);
  EXPECT_EQ(shown.size(), 0U);
}

TEST(ShownEvents, OthersExpiredOnesMakeRoomFirst) {
  ShownEvents shown({.events_max = 2, .kept_for = 60s});
  shown.note("u1", impression(1), kStart);
  shown.note("u2", impression(2), kStart);
  EXPECT_EQ(shown.note("u3", impression(3), kStart + 60s), 0U);
  EXPECT_EQ(shown.size(), 1U);
}

TEST(ShownEvents, TheOldestMakesRoomWhenFull) {
  ShownEvents shown({.events_max = 3, .kept_for = 60s});
  std::size_t made_room = 0;
  for (std::uint32_t i = 0; i < 5; ++i) {
    made_room += shown.note("u" + std::to_string(i), impression(i), kStart);
  }
  EXPECT_EQ(made_room, 2U);
  EXPECT_EQ(shown.size(), 3U);
  EXPECT_EQ(remembered(shown, "u1"), 0U);
  EXPECT_EQ(remembered(shown, "u2"), 1U);
}

TEST(ShownEvents, OfOneUserOnlyTheNewestAreKept) {
  ShownEvents shown({.events_max = 1'000'000, .kept_for = 60s});
  constexpr std::uint32_t kNoted = 20'000;
  std::size_t made_room = 0;
  for (std::uint32_t i = 0; i < kNoted; ++i) {
    made_room += shown.note("0", impression(i, kNow + i * 1ms), kStart);
  }
  EXPECT_EQ(shown.size(), ShownEvents::kEventsPerUserMax);
  EXPECT_EQ(made_room, kNoted - ShownEvents::kEventsPerUserMax);
  ledger::Ledger ledger;
  EXPECT_EQ(shown.merge_into("0", kStart, ledger).unconfirmed, ShownEvents::kEventsPerUserMax);
  EXPECT_EQ(ledger.times().back(), kNow + (kNoted - 1) * 1ms);
  EXPECT_EQ(ledger.times().front(), kNow + (kNoted - ShownEvents::kEventsPerUserMax) * 1ms);
}

TEST(ShownEvents, NoSingleCallPaysForAllThatHaveExpired) {
  constexpr std::size_t kMany = 1000;
  ShownEvents shown({.events_max = kMany, .kept_for = 60s});
  for (std::uint32_t i = 0; i < kMany; ++i) {
    shown.note("user " + std::to_string(i), impression(i), kStart);
  }
  shown.note("late", impression(kMany), kStart + 60s);
  EXPECT_GT(shown.size(), kMany - 10);
  for (std::uint32_t i = 1; i < kMany; ++i) {
    shown.note("late", impression(kMany + i), kStart + 60s);
  }
  EXPECT_EQ(shown.size(), ShownEvents::kEventsPerUserMax);
}

TEST(ShownEvents, AreForgottenWhenTakenBack) {
  ShownEvents shown({.events_max = 100, .kept_for = 60s});
  EXPECT_EQ(shown.take_back("u1", impression(1)), ShownEvents::Taken::kNothing);
  shown.note("u1", impression(1), kStart);
  shown.note("u1", impression(2), kStart);
  EXPECT_EQ(shown.take_back("u2", impression(1)), ShownEvents::Taken::kNothing);
  EXPECT_EQ(shown.take_back("u1", impression(1)), ShownEvents::Taken::kLocal);
  EXPECT_EQ(shown.take_back("u1", impression(1)), ShownEvents::Taken::kNothing);
  EXPECT_EQ(remembered(shown, "u1"), 1U);
  EXPECT_EQ(shown.take_back("u1", impression(2)), ShownEvents::Taken::kLocal);
  EXPECT_EQ(shown.size(), 0U);
}

TEST(ShownEvents, ManyStayWithinTheBound) {
  constexpr std::size_t kMax = 5000;
  ShownEvents shown({.events_max = kMax, .kept_for = 60s});
  for (std::uint32_t i = 0; i < 4 * kMax; ++i) {
    shown.note("user " + std::to_string(i), impression(i), kStart);
  }
  EXPECT_LE(shown.size(), kMax);
  EXPECT_GT(shown.size(), kMax / 2);
}

}  // namespace shown_events_test
}  // namespace fcap::checker_test
