#include "redis/missing_times.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "redis/shared_state.h"

namespace fcap::redis {
namespace missing_times_test {

constexpr Instant kThen = instant_from_ms(1'700'000'000'000);
constexpr Instant kLater = kThen + std::chrono::hours{1};
constexpr Instant kLatest = kThen + std::chrono::hours{2};

class MissingTimesTest : public ::testing::Test {
 protected:
  void set(const std::vector<MissingEvents>& missing) { times_.set(missing); }
  [[nodiscard]] std::vector<std::optional<Instant>> of(
      std::initializer_list<std::uint16_t> slots) const {
    std::vector<std::optional<Instant>> all;
    for (const std::uint16_t slot : slots) all.push_back(times_.of_slot(slot));
    return all;
  }
  using Times = std::vector<std::optional<Instant>>;

  MissingTimes times_;
};

TEST_F(MissingTimesTest, NothingIsMissingUntilItIsSaid) {
  EXPECT_EQ(times_.latest(), std::nullopt);
  EXPECT_EQ(of({0, 16'383}), (Times{std::nullopt, std::nullopt}));
}

TEST_F(MissingTimesTest, WithoutSlotsEverybodyIsConcerned) {
  set({kThen});
  EXPECT_EQ(times_.latest(), kThen);
  EXPECT_EQ(of({0, 16'383}), (Times{kThen, kThen}));
  set({});
  EXPECT_EQ(times_.latest(), std::nullopt);
  EXPECT_EQ(of({0, 16'383}), (Times{std::nullopt, std::nullopt}));
}

TEST_F(MissingTimesTest, EachSlotHasItsOwnInstant) {
  set({{kLatest, {5461, 10'922}}, {kThen, SlotSet(0, 0) | SlotSet(16'383, 16'383)}});
  EXPECT_EQ(times_.latest(), kLatest);
  EXPECT_EQ(of({0, 1, 5460, 5461, 10'922, 10'923, 16'382, 16'383}),
            (Times{kThen, std::nullopt, std::nullopt, kLatest, kLatest, std::nullopt, std::nullopt,
                   kThen}));
}

TEST_F(MissingTimesTest, WhatIsSaidLaterReplacesAllOfIt) {
  set({{kLatest, {0, 9}}});
  set({{kLater, {5, 14}}});
  EXPECT_EQ(of({4, 5, 14, 15}), (Times{std::nullopt, kLater, kLater, std::nullopt}));
  set({kThen});
  EXPECT_EQ(of({4, 5, 14, 15}), (Times{kThen, kThen, kThen, kThen}));
  set({{kLater, {0, 4}}, {kThen, {5, SlotSet::kSlots - 1}}});
  EXPECT_EQ(of({4, 5, 14, 15}), (Times{kLater, kThen, kThen, kThen}));
  set({});
  EXPECT_EQ(of({4, 5, 14, 15}), Times(4));
  EXPECT_EQ(times_.latest(), std::nullopt);
}

// No reader may ever see that a slot lacks nothing which lacks events by every statement.
TEST_F(MissingTimesTest, ReadersNeverSeeASlotCompleteWhileStatementsChange) {
  constexpr std::uint16_t kLacking = 100;
  constexpr std::uint16_t kComplete = 9000;
  const std::vector<std::vector<MissingEvents>> statements = {
      {{kThen, {0, 200}}},
      {{kLatest, {50, 150}}, {kLater, {0, 49}}},
      {{kLatest, {300, 400}}, {kThen, {kLacking, kLacking}}}};
  set(statements.back());
  std::atomic<bool> over = false;
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      do {
        EXPECT_TRUE(times_.latest());
        const auto lacking = times_.of_slot(kLacking);
        EXPECT_TRUE(lacking == kThen || lacking == kLatest);
        EXPECT_FALSE(times_.of_slot(kComplete));
      } while (!over);
    });
  }
  for (std::size_t i = 0; i < 300; ++i) set(statements[i % statements.size()]);
  over = true;
}

// The first statement about some slots makes what readers look at.
TEST_F(MissingTimesTest, ReadersMayBeThereFromTheBeginning) {
  std::atomic<bool> over = false;
  std::jthread reader([&] {
    while (!over) {
      const auto lacking = times_.of_slot(7);
      EXPECT_TRUE(!lacking || lacking == kThen || lacking == kLater);
    }
  });
  set({kThen});
  set({{kLater, {0, 99}}});
  EXPECT_EQ(times_.of_slot(7), kLater);
  set({});
  over = true;
}

TEST(SharedStateTest, PublishesWhatTheConfigurationSaysIsMissing) {
  SharedState shared{RedisOptions{}};
  shared.config.expect({.key_prefix = "p", .retention = {}, .null_user_ids = {}});
  ConfigRecord record;
  record.key_prefix = "p";
  record.missing_before["g:t"]["0"] = {kThen, {7, 9}};
  const std::string text = encode_config(record);
  (void)shared.config.compare_with({Reply::Kind::kString, 0, text, {}}, 0);
  EXPECT_FALSE(shared.is_gap_stated());
  shared.publish_config();
  EXPECT_TRUE(shared.is_gap_stated());
  EXPECT_EQ(shared.missing.of_slot(8), kThen);
  EXPECT_EQ(shared.missing.of_slot(10), std::nullopt);
}

}  // namespace missing_times_test
}  // namespace fcap::redis
