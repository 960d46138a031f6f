#include "updater/pipeline/lost_shards.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "redis/slot_tags.h"
#include "tests/unit/updater/support/fault_store.h"
#include "updater/marks/mark_value.h"

namespace fcap::updater {
namespace lost_shards_test {

// A mark as it stands in the slot that is the first of its places.
MarkValue mark(std::vector<int> places, const SlotSet& slots, const SlotSet& partly = {}) {
  MarkValue value{.position = 7};
  value.shard =
      MarkedShard{.node = "n", .replication = "r", .places = std::move(places), .slots = slots};
  value.shard->partly = partly;
  return value;
}

TEST(LostShardsMarks, SpeakForTheSlotsOfTheirShard) {
  const std::vector<MarkValue> both{mark({15, 31}, {0, 99}), mark({31, 15}, {0, 99})};
  EXPECT_EQ(LostShards::without_mark(both, {}), SlotSet(100, SlotSet::kSlots - 1));
  const std::vector<MarkValue> all{mark({15}, {0, 99}), mark({111}, {100, 199}, {200, 16'383})};
  EXPECT_TRUE(LostShards::without_mark(all, {}).empty());
}

TEST(LostShardsMarks, WhereThereAreNoneTheTopicIsNew) {
  EXPECT_TRUE(LostShards::without_mark({}, {}).empty());
}

// The copy in slot 15 has moved to another shard, and then its own one was emptied.
TEST(LostShardsMarks, ACopyAloneSaysNothing) {
  const std::vector<MarkValue> found{mark({15, 31}, {0, 99}), mark({111}, {100, 16'383})};
  EXPECT_EQ(LostShards::without_mark(found, {}), SlotSet(0, 99));
}

// A mark that changes its places is there twice for a moment.
TEST(LostShardsMarks, AnOlderCopyInThePlaceOfAnotherCounts) {
  const std::vector<MarkValue> found{mark({15, 31}, {0, 99}), mark({31, 47}, {0, 99}),
                                     mark({111}, {100, 16'383})};
  EXPECT_TRUE(LostShards::without_mark(found, {}).empty());
}

TEST(LostShardsMarks, NothingIsSaidOfSlotsThatCouldNotBeRead) {
  const std::vector<MarkValue> found{mark({111}, {100, 16'383})};
  EXPECT_EQ(LostShards::without_mark(found, SlotSet(15, 47)), SlotSet(48, 99));
}

class LostShardsTest : public ::testing::Test {
 protected:
  static std::string key_in(int slot) {
    return tagged_mark_key("p", redis::tag_of_slot(static_cast<std::uint16_t>(slot)), "g:t:0");
  }
  void SetUp() override {
    store_.immediate = true;
    IgnoredCompletion done;
    store_.append(key_in(111), encode_mark(mark({111}, {100, 16'383})), Instant::max(), {}, done);
  }
  // A look, and the next tick, which has its answers.
  SlotSet look(std::uint64_t connections) {
    EXPECT_TRUE(shards_.tick(now_, connections).empty());
    return shards_.tick(now_, connections);
  }

  struct IgnoredCompletion final : StoreCompletion {
    void complete(const StoreOutcome& /*outcome*/) noexcept override {}
  };
  testing::FaultStore store_;
  LostShards shards_{store_, "p", "g", "t"};
  LostShards::Clock::time_point now_ = LostShards::Clock::now();
};

TEST_F(LostShardsTest, LooksAtTheStartAndAfterEachConnection) {
  EXPECT_EQ(look(1), SlotSet(0, 99));
  now_ += std::chrono::hours{1};
  EXPECT_TRUE(look(1).empty()) << "it was said";
  EXPECT_EQ(look(2), SlotSet(0, 99)) << "it may have happened again";
}

TEST_F(LostShardsTest, LooksAgainWhileMarksCannotBeRead) {
  store_.unreadable_key = key_in(15);
  EXPECT_EQ(look(1), SlotSet(16, 99));
  store_.unreadable_key.clear();
  now_ += std::chrono::minutes{1};
  EXPECT_EQ(look(1), SlotSet(0, 15));
}

TEST_F(LostShardsTest, ALookThatIsUnderWayAtTheEndEndsByItself) {
  store_.immediate = false;
  {
    LostShards ends(store_, "p", "g", "t");
    EXPECT_TRUE(ends.tick(now_, 1).empty());
  }
  store_.run_all();
}

}  // namespace lost_shards_test
}  // namespace fcap::updater
