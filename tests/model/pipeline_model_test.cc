// The write path against a server that loses data in every way there is; see the model.
#include "pipeline_model.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "tests/support/seed.h"

namespace fcap::updater {
namespace pipeline_model_test {

using testing::Model;
using testing::ModelOptions;

// How many seeds: enough to find what was once wrong; FCAP_TEST_ROUNDS says more.
int rounds_of(int usual) {
  const char* text = std::getenv("FCAP_TEST_ROUNDS");  // NOLINT(concurrency-mt-unsafe)
  if (given_seed() && text == nullptr) return 1;
  return text == nullptr ? usual : std::atoi(text);
}

void run_model(int usual_rounds, std::uint64_t usual_seed, const ModelOptions& options) {
  const std::uint64_t first_seed = test_seed(usual_seed);
  const int rounds = rounds_of(usual_rounds);
  std::uint64_t rewinds = 0;
  std::uint64_t expiries_left = 0;
  std::uint64_t read_in_gaps = 0;
  std::uint64_t rebalances = 0;
  std::uint64_t slow_or_refusing_phases = 0;
  std::uint64_t read_beside_waiting = 0;
  std::uint64_t events_lost = 0;
  std::uint64_t lost_without_owner = 0;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(round);
    SCOPED_TRACE(::testing::Message() << "FCAP_TEST_SEED=" << seed);
    Model model(seed, options);
    for (int i = 0; i < 1000; ++i) model.step();
    model.heal();
    ASSERT_FALSE(model.called_complete_too_early()) << model.story();
    ASSERT_TRUE(model.came_to_rest()) << model.story();
    ASSERT_EQ(model.missing(), 0U) << "of " << model.events() << model.story();
    ASSERT_EQ(model.not_erased(), 0U) << "of " << model.events() << model.story();
    ASSERT_EQ(model.expiring_early(), 0U);
    ASSERT_GT(model.events(), 1000U);
    rewinds += model.rewinds();
    expiries_left += model.expiries_left();
    read_in_gaps += model.read_in_gaps();
    rebalances += model.rebalances();
    slow_or_refusing_phases += model.slow_or_refusing_phases();
    read_beside_waiting += model.read_beside_waiting();
    events_lost += model.events_lost();
    lost_without_owner += model.lost_without_owner();
  }
  // Otherwise nothing was tested.
  const bool is_cluster = options.shards > 0;
  EXPECT_EQ(rewinds > 0, !is_cluster);
  EXPECT_GT(expiries_left, 0U);
  EXPECT_EQ(read_in_gaps > 0, is_cluster || options.gap_min.has_value());
  EXPECT_EQ(rebalances > 0, options.processes > 1);
  EXPECT_EQ(events_lost > 0, !is_cluster);
  EXPECT_EQ(lost_without_owner > 0, options.owners_lost && !is_cluster);
  EXPECT_EQ(slow_or_refusing_phases > 0, options.slow_or_refusing);
  if (options.leaders_lost) {
    EXPECT_GT(read_beside_waiting, 0U);
  }
}

TEST(PipelineModel, WhateverTheServerLosesComesBack) {
  run_model(40, 1, {});
}

TEST(PipelineModel, WhateverTheServerLosesComesBackInGaps) {
  run_model(40, 1, {.gap_min = 30});
}

TEST(PipelineModel, LossesWhileGapsAreOpenComeBackToo) {
  run_model(40, 1, {.gap_min = 5, .trouble_of_1000 = 60, .other_logs = false});
}

TEST(PipelineModel, OtherLogsWhileGapsAreOpenAreReadFromTheirBeginning) {
  run_model(40, 1, {.gap_min = 5, .trouble_of_1000 = 60});
}

TEST(PipelineModel, PartitionsThatGoFromProcessToProcessLoseNothing) {
  run_model(30, 1, {.partitions = 3, .processes = 2});
}

TEST(PipelineModel, GapsGoFromProcessToProcess) {
  run_model(30, 1, {.gap_min = 5, .trouble_of_1000 = 60, .partitions = 3, .processes = 2});
}

TEST(PipelineModel, AServerThatIsSlowOrRefusesOneKindOfOperationLosesNothing) {
  run_model(30, 1,
            {.trouble_of_1000 = 40,
             .other_logs = false,
             .partitions = 2,
             .processes = 2,
             .slow_or_refusing = true});
}

TEST(PipelineModel, OtherLogsBesideASlowOrRefusingServerLoseNothing) {
  run_model(30, 5000,
            {.gap_min = 5,
             .trouble_of_1000 = 60,
             .partitions = 4,
             .processes = 2,
             .slow_or_refusing = true});
}

TEST(PipelineModel, PartitionsThatHaveNoLeaderForAWhileLoseNothing) {
  run_model(30, 1, {.trouble_of_1000 = 60, .partitions = 3, .leaders_lost = true});
}

TEST(PipelineModel, GapsOfPartitionsThatHaveNoLeaderForAWhileAreFilled) {
  run_model(
      30, 1,
      {.gap_min = 5, .trouble_of_1000 = 60, .partitions = 4, .processes = 2, .leaders_lost = true});
}

TEST(PipelineModel, LeadersLostBesideASlowOrRefusingServerLoseNothing) {
  run_model(30, 1,
            {.gap_min = 5,
             .trouble_of_1000 = 60,
             .other_logs = false,
             .partitions = 4,
             .processes = 2,
             .slow_or_refusing = true,
             .leaders_lost = true,
             .owners_lost = true});
}

TEST(PipelineModel, AllOfItTogetherLosesNothing) {
  run_model(30, 1,
            {.gap_min = 10,
             .trouble_of_1000 = 40,
             .other_logs = false,
             .partitions = 4,
             .processes = 3,
             .slow_or_refusing = true,
             .owners_lost = true});
}

TEST(PipelineModel, WhatAnEmptiedRedisHeldIsSaidToBeMissingWhoeverOwnsIt) {
  run_model(30, 1,
            {.gap_min = 5,
             .trouble_of_1000 = 60,
             .partitions = 3,
             .processes = 2,
             .owners_lost = true,
             .partitions_added = true,
             .other_updater = true});
}

TEST(PipelineModel, WhatAShardLosesComesBack) {
  run_model(10, 1, {.shards = 3, .other_logs = false});
}

TEST(PipelineModel, WhatShardsLoseComesBackBesideOtherLogs) {
  run_model(10, 1, {.shards = 3, .trouble_of_1000 = 40, .partitions = 2});
}

TEST(PipelineModel, GapsOfShardsGoFromProcessToProcess) {
  run_model(10, 1,
            {.shards = 3,
             .trouble_of_1000 = 40,
             .other_logs = false,
             .partitions = 3,
             .processes = 2,
             .slow_or_refusing = true,
             .leaders_lost = true,
             .owners_lost = true});
}

}  // namespace pipeline_model_test
}  // namespace fcap::updater
