#include "updater/pipeline/config_publisher.h"

#include <bitset>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "tests/integration/support/store_calls.h"
#include "tests/unit/updater/support/fault_store.h"

namespace fcap::updater {
namespace config_publisher_test {

const ConfigPublisher::Reader kReader{"g", "t"};

redis::ConfigRecord record_of(std::chrono::days retention) {
  redis::ConfigRecord record;
  record.key_prefix = "fcap";
  record.retention = retention;
  return record;
}

class ConfigPublisherTest : public ::testing::Test {
 protected:
  // A store in memory completes at once: a look and a write are two rounds.
  void tick(ConfigPublisher& publisher) {
    for (int i = 0; i < 4; ++i) publisher.tick(now_, wall_);
    now_ += std::chrono::seconds{10};
  }
  std::string stored() { return fcap::testing::StoreCalls(*store_).get("fcap:!config").record; }
  void replace(const std::string& value) {
    const std::string present = stored();
    Store::CompareAndSet change{"fcap:!config", std::nullopt, value, at_ + std::chrono::days{430}};
    if (!present.empty()) change.expected = present;
    fcap::testing::WaitingCompletion done;
    store_->compare_and_set(change, {}, done);
    EXPECT_EQ(done.wait().code, StoreCode::kOk);
  }
  void erase() { replace(""); }
  std::string stored_settings() {
    return redis::with_created(redis::with_missing_before(stored(), {}), {});
  }

  redis::ConfigRecord::MissingBefore missing() {
    const auto parsed = redis::parse_config(stored());
    EXPECT_TRUE(parsed.ok()) << stored();
    return parsed.ok() ? parsed.value().missing_before : redis::ConfigRecord::MissingBefore{};
  }

  const Instant at_ = std::chrono::floor<std::chrono::seconds>(base::wall_now());
  Instant wall_ = at_;
  std::unique_ptr<Store> store_ = make_memory_store();
  ConfigPublisher::Clock::time_point now_ = ConfigPublisher::Clock::now();
};

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

OpenGaps gaps_of(const std::map<std::int32_t, std::optional<Instant>>& partitions) {
  OpenGaps gaps;
  for (const auto& [number, before] : partitions) gaps.missing_before[number] = before;
  return gaps;
}

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
  EXPECT_EQ(stored(), redis::encode_config(record));
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
  const std::string config = redis::encode_config(record);
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

// Where Redis may have lost data, with two updaters of a topic with two partitions.
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
  EXPECT_EQ(missing(), (Missing{{"g:t", {{"*", later_}}}, {"g:u", {{"*", later_}}}}));
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

TEST_F(ConfigPublisherLoss, ANewGroupSaysNothingWhereRedisIsInUse) {
  for (int i = 0; i < 3; ++i) turn(first_, {{0, std::nullopt}, {1, std::nullopt}});
  ConfigPublisher other(*store_, record_of(std::chrono::days{32}), {"h", "t"}, {});
  tick(other);
  EXPECT_EQ(missing(), Missing{});
}

}  // namespace config_publisher_test
}  // namespace fcap::updater
