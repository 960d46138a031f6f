// What the updaters of a topic say together where Redis may have lost data.
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/config_publisher_fixture.h"

namespace fcap::updater {
namespace config_publisher_loss_test {

using testing::ConfigPublisherTest;
using testing::gaps_of;
using testing::kReader;
using testing::record_of;

// Two updaters of a topic with two partitions.
class ConfigPublisherLoss : public ConfigPublisherTest {
 protected:
  using Missing = redis::ConfigRecord::MissingBefore;
  static constexpr auto kLongAgo = ConfigPublisher::Clock::time_point{};

  struct Member {
    explicit Member(Store& store, const ConfigPublisher::Reader& reader = kReader)
        : publisher(store, record_of(std::chrono::days{32}), reader, {}) {}
    ConfigPublisher publisher;
    MarkNews marks{.partitions = 2, .latest = instant_from_ms(0)};
  };

  // One turn of an updater that owns these partitions; `compared`: all of their marks just were.
  void turn(Member& member, const std::map<std::int32_t, std::optional<Instant>>& owned,
            bool compared = true) {
    member.marks.latest = later_;
    for (const auto& [number, missing] : owned) {
      member.marks.compared[number] = compared ? now_ : kLongAgo;
    }
    member.publisher.set_open_gaps(gaps_of(owned));
    member.publisher.set_marks(member.marks);
    member.marks.gone = {};
    tick(member.publisher);
  }
  [[nodiscard]] Missing all() const { return {{"g:t", {{"*", later_}}}}; }

  Instant later_ = at_ + std::chrono::minutes{5};
  Member first_{*store_};
  Member second_{*store_};
};

TEST_F(ConfigPublisherLoss, WithoutARecordAllOfTheTopicIsSaidToBeMissingBeforeAnythingElse) {
  turn(first_, {});
  EXPECT_EQ(missing(), all());
  EXPECT_NE(first_.publisher.trouble().find("have not been compared"), std::string::npos);
  // Nobody owns a partition yet, however long that takes.
  turn(first_, {});
  turn(first_, {});
  EXPECT_EQ(missing(), all());
}

TEST_F(ConfigPublisherLoss, EachOwnerSaysWhatItHasComparedAndThenTheTopicsEntryGoes) {
  turn(first_, {});
  turn(first_, {{0, at_}});  // sees it
  turn(first_, {{0, at_}});
  EXPECT_EQ(missing(), (Missing{{"g:t", {{"*", later_}, {"0", at_}}}}));
  EXPECT_NE(first_.publisher.trouble().find("partitions 1,"), std::string::npos)
      << first_.publisher.trouble();
  turn(second_, {{1, std::nullopt}});
  turn(second_, {{1, std::nullopt}});
  EXPECT_EQ(missing(), (Missing{{"g:t", {{"0", at_}}}}));
  turn(first_, {{0, std::nullopt}});
  EXPECT_EQ(missing(), Missing{});
  EXPECT_EQ(first_.publisher.trouble(), "");
}

TEST_F(ConfigPublisherLoss, WhatWasComparedBeforeTheLossWasSeenSaysNothing) {
  turn(first_, {});
  turn(first_, {{0, std::nullopt}, {1, std::nullopt}}, false);
  turn(first_, {{0, std::nullopt}, {1, std::nullopt}}, false);
  EXPECT_EQ(missing(), all());
}

TEST_F(ConfigPublisherLoss, ItStaysWhileKafkaDoesNotSayHowManyPartitionsThereAre) {
  first_.marks.partitions = 0;
  for (int i = 0; i < 3; ++i) turn(first_, {{0, std::nullopt}, {1, std::nullopt}});
  EXPECT_EQ(missing().at("g:t").at("*").before, later_);
}

TEST_F(ConfigPublisherLoss, AFurtherLossLeavesWhatIsMissingForGood) {
  const Missing for_good{{"g:t", {{"expired", at_}}}};
  replace(
      redis::with_missing_before(redis::encode_config(record_of(std::chrono::days{32})), for_good));
  first_.marks.gone = SlotSet(0, 99);
  turn(first_, {}, false);
  EXPECT_EQ(missing(), (Missing{{"g:t", {{"*", {later_, {0, 99}}}, {"expired", at_}}}}));
  turn(first_, {});
  for (int i = 0; i < 3; ++i) turn(first_, {{0, std::nullopt}, {1, std::nullopt}});
  EXPECT_EQ(missing(), for_good);
}

TEST_F(ConfigPublisherLoss, AMarkThatIsGoneIsSaidOfAllPartitions) {
  for (int i = 0; i < 3; ++i) turn(first_, {{0, std::nullopt}, {1, std::nullopt}});
  EXPECT_EQ(missing(), Missing{});
  first_.marks.gone = SlotSet(0, 99);
  turn(first_, {{0, at_}}, false);
  EXPECT_EQ(missing(), (Missing{{"g:t", {{"*", {later_, {0, 99}}}}}}));
}

TEST_F(ConfigPublisherLoss, ALossMoreTakesInWhatWasSaidOfSinglePartitions) {
  turn(first_, {});
  for (int i = 0; i < 2; ++i) turn(first_, {{0, at_}});
  second_.marks.gone = SlotSet(0, 9);
  turn(second_, {{1, at_}}, false);
  const auto entries = missing().at("g:t");
  ASSERT_EQ(entries.size(), 1U) << stored();
  EXPECT_GT(entries.at("*").before, later_);  // another one than before
  EXPECT_EQ(entries.at("*").slots, SlotSet::all());
  // The first one has compared its mark since the former loss, but not since this one.
  turn(first_, {{0, std::nullopt}}, false);
  EXPECT_EQ(missing().at("g:t"), entries);
}

TEST_F(ConfigPublisherLoss, AnotherLossIsNotTakenForTheOneInTheSameSecond) {
  turn(first_, {});
  turn(second_, {{1, std::nullopt}});  // sees it
  for (Member* const member : {&first_, &second_}) {
    member->marks.compared[0] = member->marks.compared[1] = now_;
    member->publisher.set_marks(member->marks);
  }
  erase();
  first_.publisher.set_open_gaps(gaps_of({{0, std::nullopt}}));
  tick(first_.publisher);
  EXPECT_EQ(missing(), all());
  erase();
  wall_ += std::chrono::milliseconds{5};
  tick(first_.publisher);
  const Missing later{{"g:t", {{"*", later_ + std::chrono::milliseconds{5}}}}};
  EXPECT_EQ(missing(), later);
  tick(second_.publisher);
  EXPECT_EQ(missing(), later);
}

TEST_F(ConfigPublisherLoss, AnotherTopicsUpdaterSaysTheSameOfItsOwnOnce) {
  turn(first_, {});
  Member other(*store_, {"g", "u"});
  turn(other, {});
  EXPECT_EQ(missing(),
            (Missing{{"g:t", {{"*", later_}}}, {"g:u", {{"*", later_}, {"repeated", Instant{}}}}}));
  turn(first_, {});
  for (int i = 0; i < 3; ++i) turn(other, {{0, std::nullopt}, {1, std::nullopt}});
  EXPECT_EQ(missing(), all());
  turn(other, {{0, std::nullopt}, {1, std::nullopt}});
  EXPECT_EQ(missing(), all());
}

// It looks later than the first topic's updaters need to state a loss and to compare their marks.
TEST_F(ConfigPublisherLoss, AnotherTopicsUpdaterSaysItEvenIfTheFirstOneHasTakenItBack) {
  Member other(*store_, {"g", "u"});
  const auto settle = [&] {
    for (int i = 0; i < 4; ++i) turn(first_, {{0, std::nullopt}, {1, std::nullopt}});
  };
  settle();
  for (int i = 0; i < 4; ++i) turn(other, {{0, std::nullopt}, {1, std::nullopt}});
  EXPECT_EQ(missing(), Missing{});
  erase();
  wall_ += std::chrono::minutes{1};
  settle();
  EXPECT_EQ(missing(), Missing{});
  turn(other, {}, false);
  EXPECT_EQ(missing().at("g:u").at("*").before, later_);
}

TEST_F(ConfigPublisherLoss, ManyTopicsComeToAnEnd) {
  std::vector<std::unique_ptr<Member>> members;
  for (const char* topic : {"t", "u", "v", "w"}) {
    members.push_back(std::make_unique<Member>(*store_, ConfigPublisher::Reader{"g", topic}));
  }
  const auto settle = [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (const auto& member : members) {
        turn(*member, {{0, std::nullopt}, {1, std::nullopt}});
      }
    }
    EXPECT_EQ(missing(), Missing{});
  };
  settle(8);
  erase();
  wall_ += std::chrono::minutes{1};
  settle(8);
}

// A record that cannot be read is replaced by one that says when it was created.
TEST_F(ConfigPublisherLoss, ARecordIsNeverWithoutWhenItWasCreated) {
  replace("{}");
  turn(first_, {});
  EXPECT_EQ(redis::parse_config(stored()).value().created, wall_);
}

TEST_F(ConfigPublisherLoss, ANewGroupSaysNothingWhereRedisIsInUse) {
  for (int i = 0; i < 3; ++i) turn(first_, {{0, std::nullopt}, {1, std::nullopt}});
  ConfigPublisher other(*store_, record_of(std::chrono::days{32}), {"h", "t"}, {});
  tick(other);
  EXPECT_EQ(missing(), Missing{});
}

}  // namespace config_publisher_loss_test
}  // namespace fcap::updater
