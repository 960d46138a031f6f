// What is said after a loss, and when it is written. How the updaters of a topic say it together is
// tested with ConfigPublisherLoss, and all of it in the models.
#include "updater/pipeline/loss_statement.h"

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/fault_store.h"
#include "updater/pipeline/config_publisher.h"

namespace fcap::updater {
namespace loss_statement_test {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = LossStatement::Clock;
using Partitions = LossStatement::Partitions;

const Instant kNow = instant_from_ms(1'700'000'000'000);
const std::string kTopic = "g:t";

SlotSet both(const SlotSet& one, const SlotSet& other) {
  return one | other;
}

class LossStatementTest : public ::testing::Test {
 protected:
  // At this second, the entries stand in the record.
  void look(const Partitions& entries, int second) { look({{kTopic, entries}}, second, loss_); }
  void look(const LossStatement::Missing& missing, int second, LossStatement& loss) {
    redis::ConfigRecord found;
    found.missing_before = missing;
    found.created = created_;
    loss.look(found, own_, at(second));
  }
  [[nodiscard]] Clock::time_point at(int second) const { return began_ + seconds{second}; }

  LossStatement loss_;
  Instant created_ = kNow;
  const std::string own_ = kTopic;
  const Clock::time_point began_ = Clock::now();
};

TEST_F(LossStatementTest, LossesThatWereNotStatedYetAreStatedTogether) {
  loss_.lost({0, 9});
  loss_.lost({20, 29});
  Partitions entries;
  loss_.apply(entries, kNow);
  EXPECT_EQ(entries, (Partitions{{"*", {kNow, both({0, 9}, {20, 29})}}}));
}

TEST_F(LossStatementTest, TakesInWhatEntriesSayAndNobodyWhoLacksNothing) {
  const Instant later = kNow + std::chrono::hours{1};
  loss_.lost({0, 9});
  Partitions entries{{"*", {kNow, {20, 29}}}, {"0", Instant{}}, {"1", {later, {40, 49}}}};
  loss_.apply(entries, kNow);
  EXPECT_EQ(entries, (Partitions{{"*", {later, both(both({0, 9}, {20, 29}), {40, 49})}}}));
}

TEST_F(LossStatementTest, GoesOnlyWhenEachPartitionHasAnEntry) {
  const Partitions all{{"*", kNow}, {"0", Instant{}}, {"1", Instant{}}, {"2", Instant{}}};
  for (const char* const without : {"0", "1", "2"}) {
    Partitions entries = all;
    entries.erase(without);
    LossStatement::settle(entries, 3);
    EXPECT_TRUE(LossStatement::stands(entries)) << "without an entry of partition " << without;
  }
  Partitions entries = all;
  LossStatement::settle(entries, 4);
  EXPECT_TRUE(LossStatement::stands(entries)) << "a partition was added";
  LossStatement::settle(entries, 3);
  EXPECT_FALSE(LossStatement::stands(entries));
}

TEST_F(LossStatementTest, ALossWhileAStatementIsBeingWrittenIsStatedToo) {
  loss_.lost({0, 9});
  const std::uint64_t stated = loss_.losses();
  loss_.lost({20, 29});
  loss_.written(stated);
  EXPECT_TRUE(loss_.pending());
  loss_.written(loss_.losses());
  EXPECT_FALSE(loss_.pending());
}

// A mark that was compared before the statement was seen may have been compared before the loss.
TEST_F(LossStatementTest, OnlyWhatIsComparedAfterItWasSeenCounts) {
  const Partitions entries{{"*", kNow}};
  EXPECT_TRUE(loss_.holds_back(kTopic, entries, at(9))) << "it was not seen yet";
  look(entries, 5);
  EXPECT_TRUE(loss_.holds_back(kTopic, entries, at(4)));
  EXPECT_TRUE(loss_.holds_back(kTopic, entries, at(5)));
  EXPECT_FALSE(loss_.holds_back(kTopic, entries, at(6)));
  look(entries, 7);
  EXPECT_FALSE(loss_.holds_back(kTopic, entries, at(6))) << "it is the same one";
  const Partitions another{{"*", kNow + milliseconds{1}}};
  EXPECT_TRUE(loss_.holds_back(kTopic, another, at(9))) << "another one was not seen yet";
  look(another, 9);
  EXPECT_TRUE(loss_.holds_back(kTopic, another, at(9)));
  EXPECT_FALSE(loss_.holds_back(kTopic, another, at(10)));
}

TEST_F(LossStatementTest, OneThatHasGoneAndComesBackIsANewOne) {
  const Partitions entries{{"*", kNow}};
  look(entries, 5);
  look(LossStatement::Missing{}, 7, loss_);
  look(entries, 9);
  EXPECT_TRUE(loss_.holds_back(kTopic, entries, at(8)));
}

TEST_F(LossStatementTest, AStatementOfOthersIsALossUnlessOneStandsAlready) {
  const LossStatement::Missing others{{"h:t", {{"*", {kNow, {0, 9}}}}}};
  LossStatement beside;
  look({{"h:t", others.at("h:t")}, {kTopic, {{"*", kNow}}}}, 1, beside);
  EXPECT_FALSE(beside.pending());
  look(others, 1, loss_);
  EXPECT_TRUE(loss_.pending());
  Partitions entries;
  loss_.apply(entries, kNow);
  EXPECT_EQ(entries, (Partitions{{"*", {kNow, {0, 9}}}, {"repeated", Instant{}}}));
}

// Otherwise each of them would be news to the others, in turn and without end.
TEST_F(LossStatementTest, WhatOthersOnlyRepeatIsRepeatedByNobody) {
  look({{"h:t", {{"*", kNow}, {"repeated", Instant{}}}}}, 1, loss_);
  EXPECT_FALSE(loss_.pending());
}

TEST_F(LossStatementTest, WhatIsFoundOutIsStatedAsSuchAlsoWhereItWasToBeRepeated) {
  look({{"h:t", {{"*", {kNow, {0, 9}}}}}}, 1, loss_);
  loss_.lost({20, 29});
  Partitions entries;
  loss_.apply(entries, kNow);
  EXPECT_EQ(entries, (Partitions{{"*", {kNow, both({0, 9}, {20, 29})}}}));
}

// An updater of the same topic was faster.
TEST_F(LossStatementTest, WhatWasToBeRepeatedIsNotWhereItStandsMeanwhile) {
  const LossStatement::Missing others{{"h:t", {{"*", kNow}}}};
  look(others, 1, loss_);
  EXPECT_TRUE(loss_.pending());
  look({{"h:t", others.at("h:t")}, {kTopic, {{"*", kNow}}}}, 2, loss_);
  EXPECT_FALSE(loss_.pending());
}

TEST_F(LossStatementTest, WhatHasExpiredIsSaidOfAllItsUsersUntilTheLastOfIt) {
  Partitions entries{{"expired", {kNow, {0, 9}}}};
  LossStatement::expire(entries, {kNow - seconds{1}, {20, 29}});
  EXPECT_EQ(entries, (Partitions{{"expired", {kNow, both({0, 9}, {20, 29})}}}));
  LossStatement::expire(entries, {kNow + seconds{1}, {0, 9}});
  EXPECT_EQ(entries.at("expired").before, kNow + seconds{1});
}

// When it is written, by a publisher whose store is looked at after each step.
class LossIsWritten : public ::testing::Test {
 protected:
  LossIsWritten() { publisher_.set_open_gaps(gaps_); }
  static redis::ConfigRecord record() {
    redis::ConfigRecord record;
    record.key_prefix = "fcap";
    record.retention = std::chrono::days{32};
    return record;
  }
  void put(const redis::ConfigRecord::MissingBefore& missing) {
    store_.records()["fcap:!config"].bytes =
        redis::with_missing_before(redis::encode_config(record()), missing);
  }
  void put(const Partitions& entries) { put({{kTopic, entries}}); }
  // What is due now, one answer after the other.
  void tick() {
    for (int i = 0; i < 6; ++i) {
      publisher_.tick(now_, kNow);
      store_.run_all();
    }
  }
  [[nodiscard]] Partitions stated() {
    const auto record = redis::parse_config(store_.records()["fcap:!config"].bytes);
    if (!record.ok() || !record.value().missing_before.contains(kTopic)) return {};
    return record.value().missing_before.at(kTopic);
  }
  void owns(const std::map<std::int32_t, std::optional<redis::MissingEvents>>& partitions) {
    gaps_.missing_before.clear();
    for (const auto& [number, missing] : partitions) gaps_.missing_before[number] = missing;
    publisher_.set_open_gaps(gaps_);
  }
  // The marks of these partitions are as they were written, as of now.
  void compare(std::initializer_list<std::int32_t> partitions) {
    for (const std::int32_t number : partitions) marks_.compared[number] = now_;
    publisher_.set_marks(marks_);
  }

  testing::FaultStore store_;
  OpenGaps gaps_;
  MarkNews marks_{.partitions = 2, .latest = kNow};
  ConfigPublisher publisher_{store_, record(), {"g", "t"}, {}};
  Clock::time_point now_ = Clock::now();
};

TEST_F(LossIsWritten, WithTheFirstValueThatCheckersFind) {
  publisher_.set_marks(marks_);
  publisher_.tick(now_, kNow);
  store_.run_all();
  EXPECT_TRUE(store_.records().empty());
  publisher_.tick(now_, kNow);
  store_.run_all();
  EXPECT_TRUE(stated().contains("*"));
}

TEST_F(LossIsWritten, NoEarlierThanThePresentAlsoWhereNothingIsKnownOfEvents) {
  tick();
  ASSERT_TRUE(stated().contains("*"));
  EXPECT_GE(stated().at("*").before, kNow);
}

TEST_F(LossIsWritten, AtOnceWhereAMarkIsGone) {
  put(Partitions{});
  tick();
  now_ += seconds{1};  // a look is not due yet
  marks_.gone = {0, 9};
  publisher_.set_marks(marks_);
  tick();
  ASSERT_TRUE(stated().contains("*"));
  EXPECT_EQ(stated().at("*").slots, SlotSet(0, 9));
}

TEST_F(LossIsWritten, AtOnceWhereANewConnectionLeadsToAnEmptyRedis) {
  put(Partitions{});
  publisher_.set_marks(marks_);
  tick();
  store_.records().clear();
  now_ += seconds{1};
  publisher_.set_marks(marks_);
  tick();
  EXPECT_TRUE(store_.records().empty()) << "a look is not due yet";
  ++marks_.connections;
  publisher_.set_marks(marks_);
  tick();
  EXPECT_TRUE(stated().contains("*"));
}

// Whoever states it looks at it right after that, so that what is compared from then on counts.
TEST_F(LossIsWritten, AndIsTakenBackWithTheNextComparison) {
  publisher_.set_marks(marks_);
  tick();
  ASSERT_TRUE(stated().contains("*"));
  now_ += milliseconds{100};
  compare({0, 1});
  owns({{0, std::nullopt}, {1, std::nullopt}});
  tick();
  EXPECT_EQ(stated(), Partitions{});
}

TEST_F(LossIsWritten, AndAnOwnerThatLacksNothingSaysSoToTheOthers) {
  put({{"*", kNow}});
  publisher_.set_marks(marks_);
  tick();
  now_ += milliseconds{100};
  compare({0});
  owns({{0, std::nullopt}});
  tick();
  EXPECT_EQ(stated(), (Partitions{{"*", kNow}, {"0", Instant{}}}));
}

TEST_F(LossIsWritten, AndIsLookedAtEverySecondWhileItStands) {
  put({{"*", kNow}});
  publisher_.set_marks(marks_);
  tick();
  const Partitions both_compared{{"*", kNow}, {"0", Instant{}}, {"1", Instant{}}};
  put(both_compared);  // by others
  now_ += milliseconds{900};
  tick();
  EXPECT_EQ(stated(), both_compared);
  now_ += milliseconds{200};
  tick();
  EXPECT_EQ(stated(), Partitions{});
}

// Its slots may be more than those of the statement that stands.
TEST_F(LossIsWritten, AndTheEntryOfAPartitionStaysUntilItIsComparedAgain) {
  const Partitions before{{"*", {kNow, {0, 9}}}, {"0", {kNow, {0, 99}}}};
  put(before);
  owns({{0, std::nullopt}});
  publisher_.set_marks(marks_);
  tick();
  EXPECT_EQ(stated(), before);
}

TEST_F(LossIsWritten, AndTwoRegionsSayEachTheirOwn) {
  put({{"h:t", {{"0", kNow}}}, {kTopic, {}}});
  publisher_.set_marks(marks_);
  tick();
  now_ += seconds{1};
  marks_.gone = SlotSet::all();
  publisher_.set_marks(marks_);
  tick();
  const auto record = redis::parse_config(store_.records()["fcap:!config"].bytes);
  ASSERT_TRUE(record.ok());
  EXPECT_EQ(record.value().missing_before.at("h:t"), (Partitions{{"0", kNow}}));
  EXPECT_TRUE(record.value().missing_before.at(kTopic).contains("*"));
}

TEST_F(LossIsWritten, AndWhoHasNotComparedIsNamed) {
  put({{"*", kNow}, {"1", Instant{}}});
  publisher_.set_marks(marks_);
  tick();
  EXPECT_NE(publisher_.trouble().find("the marks of t, partitions 0, have not been compared"),
            std::string::npos)
      << publisher_.trouble();
  marks_.partitions = 0;
  publisher_.set_marks(marks_);
  now_ += seconds{2};
  tick();
  EXPECT_NE(publisher_.trouble().find("the marks of t, have not been compared"), std::string::npos)
      << publisher_.trouble();
}

// What others stated of it may be gone already.
TEST_F(LossStatementTest, ARecordThatWasCreatedAgainShowsALoss) {
  look({}, 1);
  look({}, 2);
  EXPECT_FALSE(loss_.pending());
  created_ += milliseconds{1};
  look({}, 3);
  EXPECT_TRUE(loss_.pending());
  loss_.written(loss_.losses());
  look({}, 4);
  EXPECT_FALSE(loss_.pending()) << "once";
  // In between, the record could not be read.
  created_ = {};
  look({}, 5);
  created_ = kNow + milliseconds{2};
  look({}, 6);
  EXPECT_TRUE(loss_.pending());
}

TEST_F(LossStatementTest, ARecordThatWasCreatedAgainShowsNothingMoreWhereThatIsStated) {
  look({}, 1);
  created_ += milliseconds{1};
  look({{"*", kNow}}, 2);
  look({}, 3);
  EXPECT_FALSE(loss_.pending());
}

}  // namespace loss_statement_test
}  // namespace fcap::updater
