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
  EXPECT_EQ(LostShards::without_mark(both), SlotSet(100, SlotSet::kSlots - 1));
  const std::vector<MarkValue> all{mark({15}, {0, 99}), mark({111}, {100, 199}, {200, 16'383})};
  EXPECT_TRUE(LostShards::without_mark(all).empty());
}

TEST(LostShardsMarks, WhereThereAreNoneTheTopicIsNew) {
  EXPECT_TRUE(LostShards::without_mark({}).empty());
}

// The copy in slot 15 has moved to another shard, and then its own one was emptied.
TEST(LostShardsMarks, ACopyAloneSaysNothing) {
  const std::vector<MarkValue> found{mark({15, 31}, {0, 99}), mark({111}, {100, 16'383})};
  EXPECT_EQ(LostShards::without_mark(found), SlotSet(0, 99));
}

// A mark that changes its places is there twice for a moment.
TEST(LostShardsMarks, AnOlderCopyInThePlaceOfAnotherCounts) {
  const std::vector<MarkValue> found{mark({15, 31}, {0, 99}), mark({31, 47}, {0, 99}),
                                     mark({111}, {100, 16'383})};
  EXPECT_TRUE(LostShards::without_mark(found).empty());
}

class LostShardsTest : public ::testing::Test {
 protected:
  static std::string key_in(int slot) {
    return tagged_mark_key("p", redis::tag_of_slot(static_cast<std::uint16_t>(slot)), "g:t:0");
  }
  void SetUp() override {
    store_.immediate = true;
    put(111, encode_mark(mark({111}, {100, 16'383})));
  }
  void put(int slot, const std::string& text) {
    IgnoredCompletion done;
    store_.append(key_in(slot), text, Instant::max(), {}, done);
  }
  // A look, and the next tick, which has its answers.
  SlotSet look() {
    EXPECT_TRUE(shards_.tick(now_, connections_).empty());
    SlotSet lost = shards_.tick(now_, connections_);
    now_ += std::chrono::minutes{1};
    return lost;
  }

  struct IgnoredCompletion final : StoreCompletion {
    void complete(const StoreOutcome& /*outcome*/) noexcept override {}
  };
  testing::FaultStore store_;
  LostShards shards_{store_, "p", "g", "t"};
  LostShards::Clock::time_point now_ = LostShards::Clock::now();
  std::uint64_t connections_ = 1;
};

TEST_F(LostShardsTest, AreThoseThatTwoLooksInARowFindOncePerConnection) {
  EXPECT_TRUE(look().empty());
  EXPECT_EQ(look(), SlotSet(0, 99));
  EXPECT_TRUE(look().empty()) << "it was said";
  ++connections_;
  EXPECT_EQ(look(), SlotSet(0, 99)) << "it may have happened again";
}

TEST_F(LostShardsTest, AMarkThatComesInTimeSpeaks) {
  EXPECT_TRUE(look().empty());
  put(15, encode_mark(mark({15}, {0, 99})));
  EXPECT_TRUE(look().empty());
  EXPECT_TRUE(look().empty());
}

TEST_F(LostShardsTest, ALookSaysNothingIfSomeMarkCannotBeReadOrUnderstood) {
  store_.unreadable_key = key_in(15);
  EXPECT_TRUE(look().empty());
  EXPECT_TRUE(look().empty());
  store_.unreadable_key.clear();
  put(15, "?");
  EXPECT_TRUE(look().empty());
  EXPECT_TRUE(look().empty());
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
