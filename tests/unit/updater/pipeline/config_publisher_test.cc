#include "updater/pipeline/config_publisher.h"

#include <bitset>

#include <gtest/gtest.h>

#include "tests/unit/updater/support/config_publisher_fixture.h"
#include "tests/unit/updater/support/fault_store.h"

namespace fcap::updater {
namespace config_publisher_test {

using testing::ConfigPublisherTest;
using testing::gaps_of;
using testing::kReader;
using testing::record_of;

TEST_F(ConfigPublisherTest, WritesAtTheStartAndAgainWhenItHasGoneMissing) {
  const redis::ConfigRecord record = record_of(std::chrono::days{32});
  ConfigPublisher publisher(*store_, record, kReader, {});
  tick(publisher);
  EXPECT_EQ(stored_settings(), redis::encode_config(record));
  erase();
  EXPECT_EQ(stored(), "");
  tick(publisher);
  EXPECT_EQ(stored_settings(), redis::encode_config(record));
}

TEST_F(ConfigPublisherTest, TheLatestToStartWinsAndTheOthersLeaveItAlone) {
  ConfigPublisher first(*store_, record_of(std::chrono::days{32}), kReader, {});
  tick(first);
  std::string logged;
  const redis::ConfigRecord changed = record_of(std::chrono::days{20});
  ConfigPublisher second(*store_, changed, kReader,
                         [&](LogLevel, std::string_view text) { logged = text; });
  tick(second);
  EXPECT_EQ(stored_settings(), redis::encode_config(changed));
  EXPECT_NE(logged.find("fcap:!config"), std::string::npos);
  tick(first);
  tick(second);
  EXPECT_EQ(stored_settings(), redis::encode_config(changed));
}

TEST_F(ConfigPublisherTest, AFormatThatIsNotKnownIsRefusedAndLeftAlone) {
  const std::string later = R"({"write_format":4})";
  ConfigPublisher publisher(*store_, record_of(std::chrono::days{32}), kReader, {});
  tick(publisher);
  EXPECT_TRUE(publisher.refused().ok());
  replace(later);
  tick(publisher);
  EXPECT_EQ(publisher.refused().code(), StatusCode::kRefused);
  EXPECT_NE(publisher.refused().text().find("fcap:!config: "), std::string::npos);
  ConfigPublisher another(*store_, record_of(std::chrono::days{32}), kReader, {});
  tick(another);
  EXPECT_FALSE(another.refused().ok());
  EXPECT_EQ(stored(), later);
}

// A Redis in use.
class ConfigPublisherGaps : public ConfigPublisherTest {
 protected:
  void SetUp() override { replace(redis::encode_config(record_of(std::chrono::days{32}))); }
};

TEST_F(ConfigPublisherGaps, OpenGapsAreSaidAtOnceAndTakenBackWhenTheyAreClosed) {
  const redis::ConfigRecord record = record_of(std::chrono::days{32});
  ConfigPublisher publisher(*store_, record, kReader, {});
  tick(publisher);
  now_ -= std::chrono::seconds{9};  // a look is not due yet
  publisher.set_open_gaps(gaps_of({{0, at_}, {1, std::nullopt}}));
  tick(publisher);
  EXPECT_EQ(missing(), (redis::ConfigRecord::MissingBefore{{"g:t", {{"0", at_}}}}));
  publisher.set_open_gaps(gaps_of({{0, std::nullopt}, {1, std::nullopt}}));
  tick(publisher);
  EXPECT_EQ(stored_settings(), redis::encode_config(record));
  EXPECT_EQ(missing(), redis::ConfigRecord::MissingBefore{});
}

TEST_F(ConfigPublisherGaps, UpdatersOfTwoTopicsSpeakEachOfItsOwn) {
  ConfigPublisher first(*store_, record_of(std::chrono::days{32}), kReader, {});
  ConfigPublisher second(*store_, record_of(std::chrono::days{32}), {"g", "u"}, {});
  first.set_open_gaps(gaps_of({{3, at_}}));
  second.set_open_gaps(gaps_of({{3, at_}}));
  tick(first);
  tick(second);
  EXPECT_EQ(missing(),
            (redis::ConfigRecord::MissingBefore{{"g:t", {{"3", at_}}}, {"g:u", {{"3", at_}}}}));
  first.set_open_gaps(gaps_of({{3, std::nullopt}}));
  tick(first);
  EXPECT_EQ(missing(), (redis::ConfigRecord::MissingBefore{{"g:u", {{"3", at_}}}}));
}

// Another server may hold the same value and less data.
TEST_F(ConfigPublisherGaps, WhatWasKnownOverAnotherConnectionIsNotWritten) {
  const redis::ConfigRecord record = record_of(std::chrono::days{32});
  const std::string config = redis::with_created(redis::encode_config(record), at_);
  std::uint64_t epoch = 1;
  testing::FaultStore store;
  store.epoch = [&] { return epoch; };
  std::string& value = store.records()["fcap:!config"].bytes;
  value = redis::with_missing_before(config, {{"g:t", {{"0", at_}}}});
  const std::string stated = value;
  ConfigPublisher publisher(store, record, kReader, {}, {}, [&] { return epoch; });
  const auto poll_and_run = [&] {
    publisher.tick(now_, wall_);
    store.run_all();
  };
  publisher.set_open_gaps(gaps_of({{0, std::nullopt}}));
  poll_and_run();  // it looks
  epoch = 2;
  poll_and_run();  // it would write that nothing is missing
  EXPECT_EQ(value, stated);
  publisher.set_open_gaps(gaps_of({{0, std::nullopt}}));
  for (int i = 0; i < 4; ++i) {
    now_ += std::chrono::seconds{1};
    poll_and_run();
  }
  EXPECT_EQ(value, config);
}

TEST_F(ConfigPublisherGaps, WhatIsMissingForGoodIsSaidUntilNoWindowReachesIt) {
  const redis::ConfigRecord record = record_of(std::chrono::days{32});
  const Instant gone = at_ - std::chrono::days{31};
  {
    ConfigPublisher first(*store_, record, kReader, {});
    OpenGaps gaps = gaps_of({{0, at_}});
    gaps.expired = redis::MissingEvents(gone);
    first.set_open_gaps(gaps);
    tick(first);
    EXPECT_EQ(missing(),
              (redis::ConfigRecord::MissingBefore{{"g:t", {{"0", at_}, {"expired", gone}}}}));
  }
  // It has ended, and another updater has filled what there is.
  ConfigPublisher second(*store_, record, kReader, {});
  second.set_open_gaps(gaps_of({{0, std::nullopt}, {1, std::nullopt}}));
  tick(second);
  EXPECT_EQ(missing(), (redis::ConfigRecord::MissingBefore{{"g:t", {{"expired", gone}}}}));
  ConfigPublisher third(*store_, record_of(std::chrono::days{30}), kReader, {});
  third.set_open_gaps(gaps_of({{0, std::nullopt}}));
  tick(third);
  EXPECT_TRUE(missing().empty());
}

TEST_F(ConfigPublisherGaps, NoUpdaterTakesBackWhatAnotherSaysOfItsPartitions) {
  ConfigPublisher first(*store_, record_of(std::chrono::days{32}), kReader, {});
  ConfigPublisher second(*store_, record_of(std::chrono::days{20}), kReader, {});
  first.set_open_gaps(gaps_of({{0, at_}}));
  tick(first);
  // It is set otherwise, and begins later: its settings win, and the gap stays.
  second.set_open_gaps(gaps_of({{1, at_ + std::chrono::hours{1}}, {2, std::nullopt}}));
  tick(second);
  redis::ConfigRecord::MissingBefore both{
      {"g:t", {{"0", at_}, {"1", at_ + std::chrono::hours{1}}}}};
  EXPECT_EQ(missing(), both);
  tick(first);
  EXPECT_EQ(missing(), both);
  // The first one has crashed, and partition 0 has gone to the second.
  second.set_open_gaps(gaps_of({{0, std::nullopt}, {1, at_}, {2, std::nullopt}}));
  tick(second);
  EXPECT_EQ(missing(), (redis::ConfigRecord::MissingBefore{{"g:t", {{"1", at_}}}}));
  EXPECT_EQ(redis::parse_config(stored()).value().retention, std::chrono::days{20});
}

TEST_F(ConfigPublisherGaps, TwoThatWriteAtTheSameTimeBothGetTheirWord) {
  ConfigPublisher first(*store_, record_of(std::chrono::days{32}), kReader, {});
  ConfigPublisher second(*store_, record_of(std::chrono::days{32}), kReader, {});
  tick(first);
  tick(second);
  first.set_open_gaps(gaps_of({{0, at_}}));
  second.set_open_gaps(gaps_of({{1, at_}}));
  // Both look before either writes.
  for (int i = 0; i < 8; ++i) {
    first.tick(now_, wall_);
    second.tick(now_, wall_);
  }
  EXPECT_EQ(missing(), (redis::ConfigRecord::MissingBefore{{"g:t", {{"0", at_}, {"1", at_}}}}));
}

TEST_F(ConfigPublisherGaps, WhatNoWindowReachesAnyMoreGoes) {
  ConfigPublisher gone(*store_, record_of(std::chrono::days{32}), kReader, {});
  gone.set_open_gaps(gaps_of({{7, at_ - std::chrono::days{30}}, {8, at_ - std::chrono::days{31}}}));
  tick(gone);
  EXPECT_EQ(missing().at("g:t").size(), 2U);
  // Its retention is shorter: it stands for a later time.
  ConfigPublisher publisher(*store_, record_of(std::chrono::days{29}), kReader, {});
  tick(publisher);
  EXPECT_TRUE(missing().empty()) << stored();
}

TEST_F(ConfigPublisherGaps, OfMoreGapsThanThereIsRoomForTheLatestIsSaid) {
  ConfigPublisher publisher(*store_, record_of(std::chrono::days{32}), kReader, {});
  std::map<std::int32_t, std::optional<Instant>> many;
  for (std::int32_t i = 0; i < 5000; ++i) many[i] = at_ + std::chrono::seconds{i % 4000};
  publisher.set_open_gaps(gaps_of(many));
  tick(publisher);
  EXPECT_EQ(
      missing(),
      (redis::ConfigRecord::MissingBefore{{"g:t", {{"3999", at_ + std::chrono::seconds{3999}}}}}));
}

OpenGaps gaps_in(const std::map<std::int32_t, redis::MissingEvents>& partitions) {
  OpenGaps gaps;
  for (const auto& [number, events] : partitions) gaps.missing_before[number] = events;
  return gaps;
}

TEST_F(ConfigPublisherGaps, ASlotMoreIsSaidAtOnceAndOthersSlotsStay) {
  ConfigPublisher first(*store_, record_of(std::chrono::days{32}), kReader, {});
  ConfigPublisher second(*store_, record_of(std::chrono::days{32}), kReader, {});
  first.set_open_gaps(gaps_in({{0, {at_, {0, 5460}}}}));
  tick(first);
  second.set_open_gaps(gaps_in({{1, {at_, {5461, 10'922}}}}));
  tick(second);
  redis::ConfigRecord::MissingBefore both{
      {"g:t", {{"0", {at_, {0, 5460}}}, {"1", {at_, {5461, 10'922}}}}}};
  EXPECT_EQ(missing(), both);
  now_ -= std::chrono::seconds{19};  // a look is not due yet
  first.set_open_gaps(gaps_in({{0, {at_, {0, 5461}}}}));
  tick(first);
  both["g:t"]["0"].slots = {0, 5461};
  EXPECT_EQ(missing(), both);
  first.set_open_gaps(gaps_in({{0, at_}}));
  tick(first);
  both["g:t"]["0"].slots = SlotSet::all();
  EXPECT_EQ(missing(), both);
}

TEST_F(ConfigPublisherGaps, OfMoreGapsThanThereIsRoomForAllSlotsAreSaid) {
  ConfigPublisher publisher(*store_, record_of(std::chrono::days{32}), kReader, {});
  std::map<std::int32_t, redis::MissingEvents> many;
  for (std::int32_t i = 0; i < 5000; ++i) {
    many[i] = {at_ + std::chrono::seconds{i % 4000}, {i, i + 10}};
  }
  publisher.set_open_gaps(gaps_in(many));
  tick(publisher);
  EXPECT_EQ(missing(), (redis::ConfigRecord::MissingBefore{
                           {"g:t", {{"3999", {at_ + std::chrono::seconds{3999}, {0, 5009}}}}}}));
}

/// Every second slot: a text of more than 43 KB, and of not quite 48 KB.
SlotSet even_slots() {
  std::bitset<SlotSet::kSlots> even;
  for (std::size_t slot = 0; slot < even.size(); slot += 2) even.set(slot);
  return SlotSet::of(even);
}

TEST_F(ConfigPublisherGaps, WhereThereIsNoRoomForSlotsEachPartitionIsSaidForAllUsers) {
  const SlotSet even = even_slots();
  ConfigPublisher crashing(*store_, record_of(std::chrono::days{32}), kReader, {});
  crashing.set_open_gaps(gaps_in({{5, {at_, even}}, {6, {at_, even}}, {7, {at_, even}}}));
  tick(crashing);
  EXPECT_EQ(missing(),
            (redis::ConfigRecord::MissingBefore{{"g:t", {{"5", at_}, {"6", at_}, {"7", at_}}}}));
  // Its partitions are shared out. Whoever gets 6 and 7 says nothing before it has read their
  // marks: what is said of them must outlast what the others say of theirs.
  ConfigPublisher heir(*store_, record_of(std::chrono::days{32}), kReader, {});
  heir.set_open_gaps(gaps_of({{5, std::nullopt}}));
  tick(heir);
  EXPECT_EQ(missing(), (redis::ConfigRecord::MissingBefore{{"g:t", {{"6", at_}, {"7", at_}}}}));
}

TEST_F(ConfigPublisherGaps, AnUpdaterLeavesOutItsOwnSlotsFirst) {
  const SlotSet even = even_slots();
  ConfigPublisher first(*store_, record_of(std::chrono::days{32}), kReader, {});
  ConfigPublisher second(*store_, record_of(std::chrono::days{32}), kReader, {});
  first.set_open_gaps(gaps_in({{0, {at_, even}}}));
  second.set_open_gaps(gaps_in({{1, {at_, even}}}));
  for (int i = 0; i < 2; ++i) {
    for (ConfigPublisher* const publisher : {&first, &second}) tick(*publisher);
    EXPECT_EQ(missing(),
              (redis::ConfigRecord::MissingBefore{{"g:t", {{"0", {at_, even}}, {"1", at_}}}}));
  }
}

TEST_F(ConfigPublisherGaps, WhereThatIsNotEnoughItLeavesOutTheSlotsOfOthersToo) {
  ConfigPublisher first(*store_, record_of(std::chrono::days{32}), kReader, {});
  ConfigPublisher second(*store_, record_of(std::chrono::days{32}), kReader, {});
  first.set_open_gaps(gaps_in({{0, {at_, even_slots()}}}));
  tick(first);
  EXPECT_EQ(missing().at("g:t").at("0").slots, even_slots());
  std::map<std::int32_t, std::optional<Instant>> many;
  for (std::int32_t i = 1; i < 2000; ++i) many[i] = at_;
  second.set_open_gaps(gaps_of(many));
  for (ConfigPublisher* const publisher : {&second, &first}) {
    tick(*publisher);
    EXPECT_EQ(missing().at("g:t").size(), 2000U);
    EXPECT_EQ(missing().at("g:t").at("0"), redis::MissingEvents(at_));
  }
}

TEST_F(ConfigPublisherGaps, AValueThatIsTooLongIsMadeShorter) {
  redis::ConfigRecord record = record_of(std::chrono::days{32});
  ConfigPublisher publisher(*store_, record, kReader, {});
  publisher.set_open_gaps(gaps_of({{3, at_}}));
  tick(publisher);
  record.missing_before = {{"g:t", {{"3", at_}, {"5", {at_, even_slots()}}}}};
  for (int i = 0; i < 1100; ++i) record.missing_before["h:t"][std::to_string(i)] = at_;
  const std::string too_long = redis::encode_config(record);
  EXPECT_EQ(redis::parse_config(too_long).status().code(), StatusCode::kCorrupt);
  replace(too_long);
  tick(publisher);
  record.missing_before["g:t"]["5"].slots = SlotSet::all();
  EXPECT_EQ(missing(), record.missing_before);
}

TEST_F(ConfigPublisherGaps, AValueThatIsTooLongAtTheStartKeepsWhatOthersSay) {
  redis::ConfigRecord record = record_of(std::chrono::days{32});
  record.missing_before = {{"g:t", {{"5", {at_, even_slots()}}, {"6", {at_, even_slots()}}}}};
  replace(redis::encode_config(record));
  ConfigPublisher publisher(*store_, record_of(std::chrono::days{32}), kReader, {});
  tick(publisher);
  EXPECT_EQ(missing(), (redis::ConfigRecord::MissingBefore{{"g:t", {{"5", at_}, {"6", at_}}}}));
}

}  // namespace config_publisher_test
}  // namespace fcap::updater
