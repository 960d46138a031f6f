#include "updater/watch/lag_book.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "updater/watch/log_settings.h"

namespace fcap::updater {
namespace lag_book_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr LagBook::TimePoint kNow{1000s};

LagBook book_of(const std::vector<PartitionDone>& done, bool joined = true) {
  LagBook book(8s);
  book.set_done(done, joined);
  return book;
}

TEST(LagBook, LagIsWhatIsNotDoneOfEachPartition) {
  LagBook book = book_of({{0, 100}, {1, 95}});
  // Partition 1 was heard of before.
  book.set_ends({{0, 130}, {1, 90}, {7, 1000}}, kNow);
  EXPECT_EQ(book.lag(kNow).messages, 30);
  EXPECT_THAT(book.lag(kNow).by_partition, ElementsAre(Pair(0, 30), Pair(1, 0)));
}

TEST(LagBook, WhatIsUnknownOfOnePartitionIsUnknownOfAllTogether) {
  LagBook book = book_of({{0, 100}, {1, 90}});
  EXPECT_EQ(book.lag(kNow).messages, std::nullopt);
  book.set_ends({{0, 130}}, kNow);
  EXPECT_EQ(book.lag(kNow).messages, std::nullopt);
  EXPECT_THAT(book.lag(kNow).by_partition, ElementsAre(Pair(0, 30)));
  book.set_ends({{1, 90}}, kNow);
  EXPECT_EQ(book.lag(kNow).messages, 30);
}

TEST(LagBook, AnEndThatWasHeardOfLongAgoIsUnknown) {
  LagBook book = book_of({{0, 100}});
  book.set_ends({{0, 130}}, kNow);
  EXPECT_EQ(book.lag(kNow + 7s).messages, 30);
  EXPECT_EQ(book.lag(kNow + 8s).messages, std::nullopt);
  EXPECT_THAT(book.lag(kNow + 8s).by_partition, IsEmpty());
}

TEST(LagBook, WithoutAnAssignmentNothingIsKnownAndAnEmptyOneHasNoLag) {
  EXPECT_EQ(book_of({}, false).lag(kNow).messages, std::nullopt);
  EXPECT_EQ(book_of({}, true).lag(kNow).messages, 0);
}

TEST(LagBook, WhereNothingIsKnownToBeDoneTheWorkBeginsAtItsStart) {
  LagBook book = book_of({{0, std::nullopt}, {1, 5}});
  book.set_ends({{0, 130}, {1, 5}}, kNow);
  EXPECT_EQ(book.lag(kNow).messages, std::nullopt);
  EXPECT_THAT(book.without_start(), ElementsAre(0));
  book.set_starts({{0, 30}, {1, 0}});
  EXPECT_THAT(book.without_start(), IsEmpty());
  EXPECT_EQ(book.lag(kNow).messages, 100);
  book.set_done(std::vector<PartitionDone>{{0, 120}, {1, 5}}, true);
  EXPECT_EQ(book.lag(kNow).messages, 10);
}

TEST(LagBook, ARevokedPartitionIsGoneAtOnce) {
  LagBook book = book_of({{0, 100}, {1, 100}});
  book.set_ends({{0, 130}, {1, 105}}, kNow);
  book.set_done(std::vector<PartitionDone>{{1, 100}}, true);
  EXPECT_THAT(book.lag(kNow).by_partition, ElementsAre(Pair(1, 5)));
  book.set_ends({{0, 130}}, kNow);
  book.set_done(std::vector<PartitionDone>{{0, 100}, {1, 100}}, true);
  EXPECT_EQ(book.lag(kNow).messages, std::nullopt) << "an answer that came too late";
}

TEST(LagBook, TheOldestIsThatOfThePartitionsThatLieBehind) {
  LagBook book = book_of({{0, 100}, {1, 100}, {2, 100}});
  book.set_ends({{0, 130}, {1, 105}, {2, 100}}, kNow);
  EXPECT_EQ(book.lag(kNow).oldest, std::nullopt);
  EXPECT_THAT(book.behind(9, kNow), ElementsAre(Pair(0, 100), Pair(1, 100)));
  book.set_oldest({{0, 100}, {1, 100}, {2, 100}},
                  {{0, Instant{5s}}, {1, Instant{4s}}, {2, Instant{1s}}}, kNow);
  EXPECT_EQ(book.lag(kNow).oldest, Instant{4s});
  book.set_done(std::vector<PartitionDone>{{0, 100}, {1, 105}, {2, 100}}, true);
  EXPECT_EQ(book.lag(kNow).oldest, Instant{5s});
}

TEST(LagBook, TheOldestIsUnknownWhileThatOfOnePartitionIs) {
  LagBook book = book_of({{0, 100}, {1, 100}});
  book.set_ends({{0, 130}, {1, 105}}, kNow);
  const auto both = book.behind(2, kNow);
  book.set_oldest(both, {{0, Instant{5s}}}, kNow);
  EXPECT_EQ(book.lag(kNow).oldest, std::nullopt) << "1 may have an older one";
  book.set_oldest(both, {{1, Instant{9s}}}, kNow);
  EXPECT_EQ(book.lag(kNow).oldest, Instant{5s});
  EXPECT_EQ(book.lag(kNow + 8s).oldest, std::nullopt) << "where they end is not known any more";
}

TEST(LagBook, OfWhatIsReadAgainTheOldestIsAskedAgain) {
  LagBook book = book_of({{0, 100}});
  book.set_ends({{0, 130}}, kNow);
  book.set_oldest({{0, 100}}, {{0, Instant{5s}}}, kNow);
  book.set_done(std::vector<PartitionDone>{{0, 110}}, true);
  EXPECT_EQ(book.lag(kNow).oldest, Instant{5s});
  book.set_done(std::vector<PartitionDone>{{0, 40}}, true);
  EXPECT_EQ(book.lag(kNow).oldest, std::nullopt);
  book.set_oldest({{0, 40}}, {{0, Instant{2s}}}, kNow);
  EXPECT_EQ(book.lag(kNow).oldest, Instant{2s});
  book.set_done(std::vector<PartitionDone>{{0, std::nullopt}}, true);
  book.set_starts({{0, 10}});
  EXPECT_EQ(book.lag(kNow).messages, 120);
  EXPECT_EQ(book.lag(kNow).oldest, std::nullopt);
}

TEST(LagBook, WorkThatBeganBelowTheAssumedStartHasAnOlderMessageThanTheStart) {
  LagBook book = book_of({{0, std::nullopt}});
  book.set_ends({{0, 130}}, kNow);
  book.set_starts({{0, 100}});
  book.set_oldest(book.behind(1, kNow), {{0, Instant{5s}}}, kNow);
  EXPECT_EQ(book.lag(kNow).oldest, Instant{5s});
  book.set_done(std::vector<PartitionDone>{{0, 40}}, true);
  EXPECT_EQ(book.lag(kNow).messages, 90);
  EXPECT_EQ(book.lag(kNow).oldest, std::nullopt);
}

TEST(LagBook, AnAnswerAboutMessagesAboveThoseThatAreReadAgainComesTooLate) {
  LagBook book = book_of({{0, 100}, {1, 100}});
  book.set_ends({{0, 130}, {1, 130}}, kNow);
  const auto asked = book.behind(2, kNow);
  book.set_oldest(asked, {{1, Instant{9s}}}, kNow);
  book.set_done(std::vector<PartitionDone>{{0, 40}, {1, 100}}, true);
  book.set_oldest(asked, {{0, Instant{5s}}}, kNow + 1s);
  EXPECT_EQ(book.lag(kNow + 1s).oldest, std::nullopt);
  EXPECT_THAT(book.behind(1, kNow + 1s), ElementsAre(Pair(0, 40))) << "it is still unknown";
}

TEST(LagBook, ThoseAskedForLongestAgoComeFirst) {
  LagBook book = book_of({{0, 0}, {1, 0}, {2, 0}});
  book.set_ends({{0, 1}, {1, 1}, {2, 1}}, kNow);
  const auto all = book.behind(3, kNow);
  book.set_oldest(all, {{0, Instant{5s}}}, kNow - 2s);
  book.set_oldest(all, {{1, Instant{5s}}}, kNow - 3s);
  EXPECT_THAT(book.behind(1, kNow), ElementsAre(Pair(2, 0)));
  EXPECT_THAT(book.behind(2, kNow), ElementsAre(Pair(1, 0), Pair(2, 0)));
}

TEST(LogRetention, MustCoverOurs) {
  const auto findings = [](const std::map<std::string, std::string>& settings) {
    return log_retention_findings("t", settings, std::chrono::days{32});
  };
  EXPECT_THAT(
      findings({{"retention.ms", "-1"}, {"retention.bytes", "-1"}, {"cleanup.policy", "delete"}}),
      IsEmpty());
  EXPECT_THAT(findings({{"retention.ms", "2764800000"}}), IsEmpty());
  EXPECT_THAT(findings({{"retention.ms", "604800000"}}),
              ElementsAre(HasSubstr("set it to 2764800000 or more")));
  EXPECT_THAT(findings({{"cleanup.policy", "compact"}, {"retention.bytes", "1000"}}),
              ElementsAre(HasSubstr("set it to delete"), HasSubstr("set it to -1")));
}

}  // namespace lag_book_test
}  // namespace fcap::updater
