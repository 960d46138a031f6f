// How the marks of a cluster's shards are read and written, by two masters whose answers the test
// makes. What marks say is tested with ShardMarks, and all of it together on real clusters.
#include "updater/pipeline/shard_turns.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/scripted_cluster.h"
#include "updater/marks/log_look.h"

namespace fcap::updater {
namespace shard_turns_test {

using std::chrono::milliseconds;
using testing::ScriptedCluster;

class ShardTurnsTest : public ::testing::Test {
 protected:
  static constexpr std::int64_t kPosition = 100;
  static constexpr int kAnswerAfter = 3;  // turns

  static ShardTurns::Options options() {
    // No shard is ever away.
    return {
        .key_prefix = "p", .marks_live = std::chrono::hours{1}, .patience = std::chrono::hours{1}};
  }
  ShardedPartition& add_partition() {
    ShardedPartition& added =
        turns_.add(0, ShardMarks(0, kPosition, SlotSet::all(), ShardTurns::mark_slots()), "g:t:0");
    added.position = kPosition;
    return added;
  }
  // The mark of an updater that has read up to `position` and found message `checked` again.
  static LogIdentity log_at(std::int64_t position, std::int64_t checked) {
    return {.cluster = "one", .last = point(position - 1), .checked = point(checked)};
  }
  static LogPoint point(std::int64_t offset) {
    return {offset, 1000 + offset, static_cast<std::uint64_t>(offset)};
  }
  // The mark after this one.
  static MarkValue next_mark(MarkValue mark, std::int64_t position, std::int64_t checked) {
    mark.position = position;
    mark.log = log_at(position, checked);
    ++mark.shard->serial;
    return mark;
  }
  std::uint64_t ask(const MarkValue& mark) {
    asked_.push_back(mark);
    answer_in_ = kAnswerAfter;
    return asked_.size();
  }
  // Kafka answers after some turns: what its log has of the mark is what was asked about.
  void answer() {
    if (answer_in_ == 0 || --answer_in_ != 0) return;
    EXPECT_TRUE(turns_.judged(0, asked_.size(), true, points_of(asked_.back().log)));
  }

  template <typename Holds>
  void turn_until(Holds&& holds) {
    EXPECT_TRUE(redis::eventually([&] {
      answer();
      now_ += milliseconds{2};
      turns_.tick(now_, instant_from_ms(1'700'000'000'000));
      return holds();
    })) << turns_.trouble();
  }
  // Until nothing is missing, and every mark says so.
  void come_to_rest() {
    ShardedPartition& partition = *turns_.find(0);
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
  std::vector<MarkValue> asked_;
  int answer_in_ = 0;
  ShardTurns turns_{std::make_shared<ClientShards>(cluster_.connect()), options(),
                    [this](std::int32_t, const MarkValue& mark) { return ask(mark); }, metrics_,
                    [this](LogLevel, std::string_view text) { said_.emplace_back(text); }};
  ShardTurns::Clock::time_point now_ = ShardTurns::Clock::now();
};

TEST_F(ShardTurnsTest, AValueThatIsNoMarkIsNamedOnce) {
  const std::string key = cluster_.put_in_place_of_mark("rubbish");
  ShardedPartition& partition = add_partition();
  turn_until([&] { return turns_.ready(partition); });
  EXPECT_EQ(times_said(key + ": the value is no mark of fcap's"), 1);
  come_to_rest();
  cluster_.empty_all();
  cluster_.put_in_place_of_mark("rubbish");
  turn_until([&] { return !cluster_.records(1).empty() && turns_.ready(partition); });
  EXPECT_EQ(times_said("no mark of fcap's"), 0) << "it was said";
}

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

TEST_F(ShardTurnsTest, AMarkThatAnotherUpdaterKeepsWritingIsTakenOver) {
  cluster_.put_others_mark(80, log_at(80, 40), 5);
  cluster_.change_others_mark(
      [](const MarkValue& before) { return next_mark(before, before.position + 1, 40); });
  const ShardedPartition& partition = add_partition();
  turn_until([&] { return turns_.ready(partition) || asked_.size() > 3; });
  ASSERT_EQ(asked_.size(), 1U);
  EXPECT_GT(partition.marks.confirmed(ScriptedCluster::id(0))->shard->serial, 5U);
  EXPECT_EQ(metrics_.mark_losses.value(), 0U);
}

// Nothing that was found out about the one before shows what its log is.
TEST_F(ShardTurnsTest, AMarkThatNamesOtherMessagesIsAskedAbout) {
  cluster_.put_others_mark(30, log_at(30, 20), 5);
  cluster_.change_others_mark([](const MarkValue& before) {
    const std::int64_t end = before.position;
    return end < 60 ? next_mark(before, end + 10, end + 5) : before;
  });
  const ShardedPartition& partition = add_partition();
  turn_until([&] { return turns_.ready(partition); });
  ASSERT_EQ(asked_.size(), 3U);
  EXPECT_EQ(asked_.back().position, 60);
}

TEST_F(ShardTurnsTest, AMarkThatHasFallenIsAskedAbout) {
  cluster_.put_others_mark(80, log_at(80, 40), 5);
  cluster_.change_others_mark([](const MarkValue& before) {
    const std::uint64_t serial = before.shard->serial;
    return serial < 7 ? next_mark(before, serial == 5 ? 80 : 50, 40) : before;
  });
  const ShardedPartition& partition = add_partition();
  turn_until([&] { return turns_.ready(partition); });
  ASSERT_EQ(asked_.size(), 2U);
  EXPECT_EQ(asked_.back().position, 50);
}

TEST_F(ShardTurnsTest, AnAnswerIsUsedForOneMarkOnly) {
  cluster_.put_others_mark(80, log_at(80, 40), 5);
  const ShardedPartition& partition = add_partition();
  turn_until([&] { return turns_.ready(partition); });
  EXPECT_EQ(asked_.size(), 1U);
  // The log may be another one by now.
  const std::uint64_t serial = partition.marks.confirmed(ScriptedCluster::id(0))->shard->serial;
  cluster_.put_others_mark(90, log_at(90, 40), serial + 5);
  turn_until([&] { return asked_.size() > 1; });
  EXPECT_EQ(asked_.back().position, 90);
}

}  // namespace shard_turns_test
}  // namespace fcap::updater
