#include "updater/pipeline/rewind.h"

#include <utility>

#include <gtest/gtest.h>

namespace fcap::updater {
namespace rewind_test {

using To = Rewind::To;

TEST(Start, IsTheLowerOfCommittedOffsetAndMark) {
  EXPECT_EQ(decide_start(100, 80), (Start{false, 80}));
  EXPECT_EQ(decide_start(80, 100), (Start{false, 80}));
}

TEST(Start, AMarkWithoutACommittedOffsetSpeaksOfAnotherLog) {
  EXPECT_TRUE(decide_start(std::nullopt, 80).retention_start);
}

TEST(Start, AMarkWhoseLogIsKnownNeedsNoCommittedOffset) {
  EXPECT_EQ(decide_start(std::nullopt, 80, true), (Start{false, 80}));
  EXPECT_EQ(decide_start(60, 80, true), (Start{false, 60}));
  EXPECT_TRUE(decide_start(std::nullopt, std::nullopt, true).retention_start);
}

TEST(Start, WithoutAMarkIsTheStartOfRetentionWhateverWasCommitted) {
  EXPECT_TRUE(decide_start(100, std::nullopt).retention_start);
  EXPECT_TRUE(decide_start(std::nullopt, std::nullopt).retention_start);
}

Claim below(std::int64_t position, Gaps gaps = {}) {
  return {position, std::move(gaps)};
}

TEST(Rewind, TheMarkWrittenLastMeansThatNothingIsLost) {
  EXPECT_EQ(decide_rewind({below(100), std::nullopt, false}, below(100)).to, To::kNowhere);
  EXPECT_EQ(decide_rewind({below(100, {{3, 5}}), std::nullopt, false}, below(100, {{3, 5}})).to,
            To::kNowhere);
}

TEST(Rewind, AMarkWhoseWriteWasNotAnsweredIsOursToo) {
  EXPECT_EQ(decide_rewind({below(100), below(120), false}, below(120)).to, To::kNowhere);
  EXPECT_EQ(decide_rewind({below(100), below(120), false}, below(100)).to, To::kNowhere);
}

TEST(Rewind, AnOlderMarkShowsALossBackToIt) {
  EXPECT_EQ(decide_rewind({below(100), std::nullopt, false}, below(40)),
            (Rewind{To::kClaim, below(40), false}));
}

TEST(Rewind, AMarkWithAnOlderGapShowsALossToo) {
  EXPECT_EQ(decide_rewind({below(100, {{3, 5}}), std::nullopt, false}, below(100, {{3, 9}})),
            (Rewind{To::kClaim, below(100, {{3, 9}}), false}));
}

TEST(Rewind, AMissingMarkShowsAnEmptiedServer) {
  EXPECT_EQ(decide_rewind({below(100), std::nullopt, false}, std::nullopt).to, To::kRetentionStart);
}

TEST(Rewind, AMissingMarkThatWasNeverThereShowsNothing) {
  EXPECT_EQ(decide_rewind({std::nullopt, std::nullopt, false}, std::nullopt).to, To::kNowhere);
}

TEST(Rewind, AfterAReconnectionWhatIsBehindTheMarkIsReadAgain) {
  // The mark is as written, but events acknowledged after it may be on a lost master.
  EXPECT_EQ(decide_rewind({below(100), std::nullopt, true}, below(100)),
            (Rewind{To::kClaim, below(100), false}));
}

TEST(Rewind, AfterAReconnectionAMarkOfUncertainOriginIsLowered) {
  EXPECT_EQ(decide_rewind({below(100), below(120), true}, below(120)),
            (Rewind{To::kClaim, below(100), true}));
  EXPECT_EQ(decide_rewind({below(100, {{10, 40}}), below(120, {{10, 20}, {60, 80}}), true},
                          below(120, {{10, 20}, {60, 80}})),
            (Rewind{To::kClaim, below(100, {{10, 40}, {60, 80}}), true}));
  EXPECT_EQ(decide_rewind({std::nullopt, below(120), true}, below(120)),
            (Rewind{To::kRetentionStart, {}, true}));
}

TEST(Rewind, AfterAReconnectionWithoutAMarkEverythingIsReadAgain) {
  EXPECT_EQ(decide_rewind({std::nullopt, std::nullopt, true}, std::nullopt).to,
            To::kRetentionStart);
}

TEST(Recovery, ReadsWhatIsLittleInLine) {
  EXPECT_EQ(plan_recovery(below(40), 90, 100, 61).read_from, 40);
  EXPECT_TRUE(plan_recovery(below(40), 90, 100, 61).gaps.empty());
  EXPECT_EQ(plan_recovery(below(40), 90, 100, std::nullopt).read_from, 40);
}

TEST(Recovery, MakesAGapOfWhatIsMuchAndReadsOnFromWhatIsDone) {
  EXPECT_EQ(plan_recovery(below(40), 90, 100, 60).read_from, 90);
  EXPECT_EQ(plan_recovery(below(40), 90, 100, 60).gaps, (Gaps{{40, 90}}));
  EXPECT_EQ(plan_recovery(below(40, {{5, 10}}), 90, 100, 60).gaps, (Gaps{{5, 10}, {40, 90}}));
}

TEST(Recovery, OfAMarkAheadOnlyTheGapsAreMissing) {
  EXPECT_EQ(plan_recovery(below(200, {{5, 10}}), 90, 100, 60).read_from, 100);
  EXPECT_EQ(plan_recovery(below(200, {{5, 10}}), 90, 100, 60).gaps, (Gaps{{5, 10}}));
}

TEST(Mark, NeverFallsExceptOnPurpose) {
  EXPECT_EQ(mark_to_write(50, std::nullopt, false), 50);
  EXPECT_EQ(mark_to_write(50, 40, false), 50);
  EXPECT_EQ(mark_to_write(50, 60, false), 60);
  EXPECT_EQ(mark_to_write(50, 60, true), 50);
}

}  // namespace rewind_test
}  // namespace fcap::updater
