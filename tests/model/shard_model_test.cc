// Marks per shard against clusters that lose data in every way there is; see the model.
// FCAP_TEST_ROUNDS=1000000 FCAP_TEST_SEED=1 runs as many seeds; a failure names its own.
#include "shard_model.h"

#include <cstdlib>
#include <functional>

#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace fcap::updater {
namespace shard_model_test {

using testing::ShardModel;
using testing::ShardModelOptions;
using testing::ShardWorld;

int rounds_of(int usual) {
  const char* text = std::getenv("FCAP_TEST_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  if (given_seed() && text == nullptr) return 1;
  return text == nullptr ? usual : std::atoi(text);
}

struct Sums {
  std::size_t moved = 0;
  std::size_t losses = 0;
  std::size_t rewritten = 0;
  std::size_t stated = 0;
};

// Whatever happens, nothing is lost; `more` is looked at beside it.
Sums run_model(const ShardModelOptions& options,
               const std::function<void(const ShardModel&)>& more = {}) {
  constexpr int kRounds = 50;
  const std::uint64_t first = test_seed(1);
  Sums sums;
  const int rounds = rounds_of(kRounds);
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(round);
    SCOPED_TRACE(::testing::Message() << "FCAP_TEST_SEED=" << seed);
    ShardModel model(seed, options);
    model.run();
    if (options.first_away) {
      model.settle_without_the_first();
      EXPECT_TRUE(model.others_marked()) << model.story();
      EXPECT_EQ(model.missing(ShardWorld::all() - model.of_first()), 0U) << model.story();
    }
    model.heal();
    EXPECT_FALSE(model.false_claim()) << model.story();
    EXPECT_FALSE(model.called_complete_too_early()) << model.story();
    EXPECT_TRUE(model.came_to_rest()) << model.story();
    EXPECT_EQ(model.missing(), 0U) << "of " << model.events() << model.story();
    if (more) more(model);
    sums.moved += model.moved();
    sums.losses += model.losses();
    sums.rewritten += model.rewritten();
    sums.stated += model.events_stated();
    if (::testing::Test::HasFailure()) break;
  }
  return sums;
}

TEST(ShardModel, SlotsThatMoveLoseNothingAndRewindNoFurtherThanTheLowerMark) {
  const Sums sums = run_model({.losses = false}, [](const ShardModel& model) {
    EXPECT_EQ(model.slots_restarted(), 0U) << model.story();
    EXPECT_EQ(model.too_far(), 0U) << model.story();
  });
  EXPECT_GT(sums.moved, 0U);
}

TEST(ShardModel, OfAShardThatLosesDataOnlyItsOwnUsersAreWrittenAgain) {
  const Sums sums = run_model(
      {.moves = false, .flickers = false, .crashes = false, .first_only = true, .faults = false},
      [](const ShardModel& model) {
        // A live event that was not acknowledged in time is written again as well.
        EXPECT_TRUE(model.of_first().covers(model.written_again())) << model.story();
      });
  EXPECT_GT(sums.losses, 0U);
  EXPECT_GT(sums.rewritten, 0U);
}

TEST(ShardModel, ShardsThatLoseDataWhileSlotsMoveLoseNothing) {
  const Sums sums = run_model({.crashes = false});
  EXPECT_GT(sums.losses, 0U);
  EXPECT_GT(sums.moved, 0U);
  EXPECT_GT(sums.stated, 0U);
}

constexpr ShardModelOptions kAllOfIt{
    .masters = 4, .partitions = 3, .trouble_of_1000 = 60, .zombies = true, .adds_masters = true};

TEST(ShardModel, AllOfItTogetherLosesNothing) {
  run_model(kAllOfIt);
}

TEST(ShardModel, AnOlderMarkDoesNotSpeakForItsShardAgain) {
  for (const std::uint64_t seed : {1376U, 2771U}) {
    ShardModel model(seed, kAllOfIt);
    model.run();
    model.heal();
    EXPECT_FALSE(model.false_claim()) << model.story();
    EXPECT_EQ(model.missing(), 0U) << model.story();
  }
}

TEST(ShardModel, ADeadShardDoesNotStopTheOthers) {
  const ShardModelOptions options{.moves = false, .losses = false, .first_away = true};
  run_model(options);
}

}  // namespace shard_model_test
}  // namespace fcap::updater
