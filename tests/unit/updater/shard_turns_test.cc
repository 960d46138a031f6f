// How the marks of a cluster's shards are read and written, by two masters whose answers the test
// makes. What marks say is tested with ShardMarks, and all of it together on real clusters.
#include "updater/pipeline/shard_turns.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "scripted_cluster.h"
#include "tests/part.h"

namespace fcap::updater {
namespace {

using std::chrono::milliseconds;
using testing::ScriptedCluster;

class ShardTurnsTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kPosition = 100;

  static ShardTurns::Options options() {
    // No shard is ever away.
    return {
        .key_prefix = "p", .marks_live = std::chrono::hours{1}, .patience = std::chrono::hours{1}};
  }
  ShardedPartition& add_partition() {
    ShardedPartition& added = turns_.add(
        part(0), ShardMarks(0, kPosition, SlotSet::all(), ShardTurns::mark_slots()), "g:t:0");
    added.position = kPosition;
    return added;
  }
  template <typename Holds>
  void turn_until(Holds&& holds) {
    EXPECT_TRUE(redis::eventually([&] {
      now_ += milliseconds{2};
      turns_.tick(now_, instant_from_ms(1'700'000'000'000));
      return holds();
    })) << turns_.trouble();
  }
  // Until nothing is missing, and every mark says so.
  void come_to_rest() {
    ShardedPartition& partition = *turns_.find(part(0));
    turn_until([&] { return turns_.ready(partition); });
    partition.marks.filled(SlotSet::all(), {0, kPosition}, partition.marks.stamp());
    turn_until([&] { return partition.marks.settled(kPosition); });
    said_.clear();
  }
  [[nodiscard]] std::ptrdiff_t times_said(std::string_view text) const {
    return std::ranges::count_if(
        said_, [text](const std::string& line) { return line.find(text) != std::string::npos; });
  }

  ScriptedCluster cluster_;
  Metrics metrics_;
  std::vector<std::string> said_;
  ShardTurns turns_{cluster_.connect(), options(),
                    [](kafka::TopicPartition, const MarkValue&) { return 0; }, metrics_,
                    [this](LogLevel, std::string_view text) { said_.emplace_back(text); }};
  ShardTurns::Clock::time_point now_ = ShardTurns::Clock::now();
};

TEST_F(ShardTurnsTest, EachShardThatLosesItsMarkCountsAlsoIfAllLoseTheSame) {
  ShardedPartition& partition = add_partition();
  come_to_rest();
  EXPECT_EQ(metrics_.mark_losses.value(), 0U);
  cluster_.empty_all();
  turn_until([&] {
    return !cluster_.records(0).empty() && !cluster_.records(1).empty() && turns_.ready(partition);
  });
  EXPECT_EQ(metrics_.mark_losses.value(), 2U);
  for (const int node : {0, 1}) {
    EXPECT_EQ(times_said("shard " + cluster_.address(node) +
                         " may lack events (it has no mark): 100 offsets are read again"),
              1);
  }
}

}  // namespace
}  // namespace fcap::updater
