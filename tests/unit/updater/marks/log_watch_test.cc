#include "updater/marks/log_watch.h"

#include <gtest/gtest.h>

namespace fcap::updater {
namespace log_watch_test {

LogPoint point(std::int64_t offset) {
  return {offset, -1, static_cast<std::uint64_t>(offset) * 1000};
}

// Has found its message 6 again; what follows may be of any log.
LogWatch looked_at() {
  LogWatch watch;
  watch.begin({.cluster = "c", .last = point(5)}, 6);
  watch.delivered(point(6));
  watch.start_look(7);
  LogVerdict same;
  same.is = LogVerdict::LogMatch::kSame;
  same.newest = point(6);
  watch.end_look(same);
  return watch;
}

// The topic may have been recreated since the look, so that only its message speaks for what was
// done before. A mark that named a later one would be taken for true of the new log.
TEST(LogWatchTest, AfterARewindAMarkStillNamesWhatTheLastLookHasFound) {
  LogWatch watch = looked_at();
  for (std::int64_t offset = 7; offset < 20; ++offset) watch.delivered(point(offset));
  watch.restart(20);
  watch.delivered(point(20));
  const LogIdentity log = watch.identity(21);
  EXPECT_EQ(log.last, point(20));
  EXPECT_EQ(log.checked, point(6));
}

TEST(LogWatchTest, AfterARewindBeforeAnyLookItNamesTheFirstMessageThatWasDelivered) {
  LogWatch watch;
  for (std::int64_t offset = 7; offset < 20; ++offset) watch.delivered(point(offset));
  watch.restart(20);
  EXPECT_EQ(watch.identity(20).checked, point(7));
  watch.start_look(20);
  EXPECT_EQ(watch.look->known.points.front(), point(7));
}

TEST(LogWatchTest, AfterARewindBelowAllThatWasDeliveredTheOldestWitnessIsNamed) {
  LogWatch watch = looked_at();
  for (std::int64_t offset = 7; offset < 20; ++offset) watch.delivered(point(offset));
  EXPECT_EQ(watch.identity(20).last, point(19)) << "and the others need not be kept";
  watch.restart(10);
  EXPECT_EQ(watch.identity(10).last, point(6));
}

TEST(LogWatchTest, AMessageReadInAGapIsAWitnessIfItWasTheFirst) {
  LogWatch watch;
  watch.read_in_gap(point(7), 20);
  watch.read_in_gap(point(3), 20);
  EXPECT_EQ(watch.identity(20).last, point(7));
  watch.delivered(point(20));
  EXPECT_EQ(watch.identity(21).last, point(20));
  EXPECT_EQ(watch.identity(21).checked, point(7));
  watch.start_look(21);
  EXPECT_EQ(watch.look->known.points, (std::vector{point(7), point(20)}));
  LogWatch delivered_first;
  delivered_first.delivered(point(20));
  delivered_first.read_in_gap(point(7), 21);
  EXPECT_EQ(delivered_first.identity(21).checked, point(20));
}

TEST(LogWatchTest, OfAMarkAheadOfTheReadingTheMessageBelowItIsNamed) {
  LogWatch watch;
  watch.know({.cluster = "c", .last = point(30), .checked = point(12)}, 20);
  EXPECT_EQ(watch.identity(20).last, point(12));
}

TEST(LogWatchTest, WhatALookHasFoundOfAMarkIsCheckedUntilALaterOneIs) {
  LogWatch watch;
  watch.know({.cluster = "c", .last = point(12)}, 20, point(12));
  watch.know({.cluster = "c", .last = point(5)}, 20, point(5));
  watch.delivered(point(20));
  EXPECT_EQ(watch.identity(21).checked, point(12));
}

TEST(LogWatchTest, WhatWasDeliveredBeforeALooksAnswerIsTheOlderWitness) {
  LogWatch watch;
  watch.delivered(point(20));
  watch.know({.cluster = "c", .last = point(12)}, 21, point(12));
  EXPECT_EQ(watch.identity(21).checked, point(20));
}

TEST(LogWatchTest, AMessageThatIsGoneIsNamedOnlyWhileNoOtherIsKnown) {
  LogWatch watch;
  watch.assume({.cluster = "c", .last = point(5)}, 20);
  EXPECT_EQ(watch.identity(20).last, point(5));
  watch.know({.cluster = "c", .last = point(12)}, 20, point(12));
  EXPECT_EQ(watch.identity(20).last, point(12));
  watch.assume({.cluster = "c", .last = point(15)}, 20);
  EXPECT_EQ(watch.identity(20).last, point(12));
}

void find_none_again(LogWatch& watch, std::int64_t position) {
  watch.start_look(position);
  LogVerdict unknown;
  unknown.is = LogVerdict::LogMatch::kUnknown;
  watch.end_look(unknown);
}

TEST(LogWatchTest, AMessageThatIsGoneKeepsNoneOutThatALookHasFound) {
  LogWatch watch;
  watch.assume({.cluster = "c", .last = point(5)}, 20);
  watch.know({.cluster = "c", .last = point(30), .checked = point(12)}, 20, point(12));
  EXPECT_EQ(watch.identity(20).last, point(12));
  watch.delivered(point(20));
  find_none_again(watch, 21);
  EXPECT_EQ(watch.identity(21).checked, point(12));
}

void find_all_again(LogWatch& watch, std::int64_t position) {
  watch.start_look(position);
  LogVerdict same;
  same.newest = watch.look->known.points.back();
  watch.end_look(same);
}

// What the mark was about had expired before the topic was recreated. The new topic may have a
// message there.
TEST(LogWatchTest, WhereNothingIsFoundAgainAMessageBelowTheStartIsStillLookedForAndNamed) {
  for (const bool found_at_first : {true, false}) {
    LogWatch watch;
    const LogIdentity log{.cluster = "c", .last = point(5)};
    if (found_at_first) {
      watch.begin(log, 6);
    } else {
      watch.assume(log, 6);
    }
    find_none_again(watch, 6);
    watch.delivered(point(6));
    watch.start_look(7);
    EXPECT_EQ(watch.look->known.points.front(), point(5)) << found_at_first;
    EXPECT_EQ(watch.identity(7).checked, point(5)) << found_at_first;
  }
}

// The message that the look has found is above what marks speak for now.
TEST(LogWatchTest, AfterARewindBelowWhatWasFoundAWitnessBelowItIsNamed) {
  LogWatch watch = looked_at();
  EXPECT_EQ(watch.identity(7).last, point(6)) << "and the others need not be kept";
  watch.restart(5);
  watch.know({.cluster = "c", .last = point(4)}, 5);
  find_all_again(watch, 5);
  watch.delivered(point(5));
  EXPECT_EQ(watch.identity(6).checked, point(4)) << "what is delivered now may be of another log";
}

TEST(LogWatchTest, ASecondRewindKeepsTheWitnessOfTheFirst) {
  LogWatch watch;
  for (std::int64_t offset = 10; offset < 120; ++offset) watch.delivered(point(offset));
  find_all_again(watch, 120);
  watch.restart(60);
  find_all_again(watch, 60);
  for (std::int64_t offset = 60; offset < 80; ++offset) watch.delivered(point(offset));
  watch.restart(70);
  for (std::int64_t offset = 70; offset < 100; ++offset) watch.delivered(point(offset));
  EXPECT_EQ(watch.identity(100).checked, point(10));
  for (std::int64_t offset = 100; offset < 130; ++offset) watch.delivered(point(offset));
  EXPECT_EQ(watch.identity(130).checked, point(119)) << "found again by the first look";
}

TEST(LogWatchTest, AfterARewindALogThatEndsBeforeWhatWasReadIsStillAnother) {
  LogWatch watch;
  for (std::int64_t offset = 500; offset < 700; ++offset) watch.delivered(point(offset));
  watch.restart(600);
  watch.start_look(600);
  EXPECT_EQ(watch.look->known.position, 700);
}

TEST(LogWatchTest, AfterTroubleWithABrokerItNamesTheNewestMessageFromBefore) {
  LogWatch watch = looked_at();
  for (std::int64_t offset = 7; offset < 20; ++offset) watch.delivered(point(offset));
  watch.suspect();
  watch.delivered(point(20));
  EXPECT_EQ(watch.identity(21).checked, point(19));
}

TEST(LogWatchTest, BeforeAnyLookItNamesTheFirstMessageThatWasDelivered) {
  LogWatch watch;
  for (std::int64_t offset = 7; offset < 20; ++offset) watch.delivered(point(offset));
  const LogIdentity log = watch.identity(20);
  EXPECT_EQ(log.last, point(19));
  EXPECT_EQ(log.checked, point(7));
}

}  // namespace log_watch_test
}  // namespace fcap::updater
