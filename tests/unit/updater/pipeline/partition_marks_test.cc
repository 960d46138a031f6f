// What partitions make of the marks that they find, and where marks are written.
#include "tests/unit/updater/support/partition_set_fixture.h"

namespace fcap::updater {
namespace partition_marks_test {

class PartitionMarks : public testing::PartitionSetFixture {};

TEST_F(PartitionMarks, AMarkIsNotWrittenToAServerReachedSince) {
  store_.epoch = [this] { return epoch_; };
  set_mark(100);
  assign();
  tick();
  testing::complete(set_, take(100, 150));
  store_.immediate = false;
  tick();            // takes the first answer in, writes 150
  ++epoch_;          // the old master is gone with the events …
  store_.run_all();  // … and a crash just now must find nothing that claims them
  EXPECT_EQ(mark(), "100");
  store_.immediate = true;
  settle();
  EXPECT_EQ(to_place(), (Places{{0, 100}}));
}

TEST_F(PartitionMarks, WhatLiesBehindTheFirstGapOfAMarkIsReadAgain) {
  store_.records()[key(0)].bytes = "4 100 gaps=40-50,60-70";
  log_.commits[0] = 100;
  EXPECT_EQ(assign(), 40);
  EXPECT_EQ(store_.records()[key(0)].bytes, "4 40");
}

TEST_F(PartitionMarks, AMarkThatIsNoNumberCountsAsMissing) {
  store_.records()[key(0)].bytes = "rubbish";
  EXPECT_EQ(assign(), 10);
  ASSERT_FALSE(said_.empty());
  EXPECT_TRUE(said_[0].starts_with(key(0) + ": ")) << said_[0];
  EXPECT_NE(said_[0].find("no mark of fcap's"), std::string::npos) << said_[0];
  testing::complete(set_, take(10, 20));
  tick();
  tick();
  EXPECT_EQ(mark(), "20");
  said_.clear();
  store_.records()[key(0)].bytes = "rubbish";
  settle();
  for (const std::string& line : said_) EXPECT_EQ(line.find("no mark of"), std::string::npos);
}

TEST_F(PartitionMarks, AMarkOfAClustersShardCountsAsMissing) {
  store_.records()[key(0)].bytes = "4 100 node=n replication=r arrivals=safe serial=1 slots=0-99";
  log_.commits[0] = 100;
  EXPECT_EQ(assign(), 10);
  EXPECT_EQ(mark(), "10") << "it is replaced";
}

TEST_F(PartitionMarks, AMarkOfATopicThatWasRecreatedFallsBeforeAnythingIsRead) {
  set_mark(1000);
  log_.commits.clear();
  EXPECT_EQ(assign(), 10);
  EXPECT_EQ(mark(), "10");
  EXPECT_EQ(metrics_.offset_resets.value(), 1U);
  EXPECT_TRUE(set_.take(0, 10));
}

}  // namespace partition_marks_test
}  // namespace fcap::updater
