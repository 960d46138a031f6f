#include "updater/pipeline/rewind.h"

#include <gtest/gtest.h>

namespace fcap::updater {
namespace {

using To = Rewind::To;

TEST(Start, IsTheLowerOfCommittedOffsetAndMark) {
  EXPECT_EQ(decide_start(100, 80), (Start{false, 80}));
  EXPECT_EQ(decide_start(80, 100), (Start{false, 80}));
}

TEST(Start, AMarkWithoutACommittedOffsetSpeaksOfAnotherLog) {
  EXPECT_TRUE(decide_start(std::nullopt, 80).retention_start);
}

TEST(Start, WithoutAMarkIsTheStartOfRetentionWhateverWasCommitted) {
  EXPECT_TRUE(decide_start(100, std::nullopt).retention_start);
  EXPECT_TRUE(decide_start(std::nullopt, std::nullopt).retention_start);
}

TEST(Rewind, TheMarkWrittenLastMeansThatNothingIsLost) {
  EXPECT_EQ(decide_rewind({100, std::nullopt, false, 150}, 100).to, To::kNowhere);
}

TEST(Rewind, AMarkWhoseWriteWasNotAnsweredIsOursToo) {
  EXPECT_EQ(decide_rewind({100, 120, false, 150}, 120).to, To::kNowhere);
  EXPECT_EQ(decide_rewind({100, 120, false, 150}, 100).to, To::kNowhere);
}

TEST(Rewind, AnOlderMarkShowsALossBackToIt) {
  EXPECT_EQ(decide_rewind({100, std::nullopt, false, 150}, 40), (Rewind{To::kOffset, 40, false}));
}

TEST(Rewind, AMissingMarkShowsAnEmptiedServer) {
  EXPECT_EQ(decide_rewind({100, std::nullopt, false, 150}, std::nullopt).to, To::kRetentionStart);
}

TEST(Rewind, AMissingMarkThatWasNeverThereShowsNothing) {
  EXPECT_EQ(decide_rewind({std::nullopt, std::nullopt, false, 150}, std::nullopt).to, To::kNowhere);
}

TEST(Rewind, AfterAReconnectionWhatIsBehindTheMarkIsReadAgain) {
  // The mark is as written, but events acknowledged after it may be on a lost master.
  EXPECT_EQ(decide_rewind({100, std::nullopt, true, 150}, 100), (Rewind{To::kOffset, 100, false}));
  EXPECT_EQ(decide_rewind({100, std::nullopt, true, 100}, 100).to, To::kNowhere);
}

TEST(Rewind, AfterAReconnectionAMarkOfUncertainOriginIsLowered) {
  EXPECT_EQ(decide_rewind({100, 120, true, 150}, 120), (Rewind{To::kOffset, 100, true}));
  EXPECT_EQ(decide_rewind({std::nullopt, 120, true, 150}, 120),
            (Rewind{To::kRetentionStart, 0, true}));
}

TEST(Rewind, AfterAReconnectionWithoutAMarkEverythingIsReadAgain) {
  EXPECT_EQ(decide_rewind({std::nullopt, std::nullopt, true, 150}, std::nullopt).to,
            To::kRetentionStart);
}

TEST(Rewind, AMarkAheadOfThePositionPutsNothingInDoubt) {
  EXPECT_EQ(decide_rewind({100, std::nullopt, false, 150}, 200).to, To::kNowhere);
  EXPECT_EQ(decide_rewind({100, std::nullopt, true, 150}, 200).to, To::kNowhere);
}

TEST(Mark, NeverFallsExceptOnPurpose) {
  EXPECT_EQ(mark_to_write(50, std::nullopt, false), 50);
  EXPECT_EQ(mark_to_write(50, 40, false), 50);
  EXPECT_EQ(mark_to_write(50, 60, false), 60);
  EXPECT_EQ(mark_to_write(50, 60, true), 50);
}

}  // namespace
}  // namespace fcap::updater
