#include "redis/config_record.h"

#include <vector>

#include <gtest/gtest.h>

namespace fcap::redis {
namespace config_record_test {

using std::chrono::days;
using std::chrono::milliseconds;

ConfigRecord usual() {
  ConfigRecord record;
  record.key_prefix = "fcap";
  record.retention = days{32};
  record.null_user_ids = {"0", "null"};
  return record;
}

ExpectedConfig expected() {
  return {.key_prefix = "fcap", .retention = days{32}, .null_user_ids = {"null", "0"}};
}

TEST(ConfigRecord, ComesBackAsItWasWritten) {
  const auto parsed = parse_config(encode_config(usual()));
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value(), usual());
}

TEST(ConfigRecord, IsOneSmallReadableValue) {
  EXPECT_EQ(encode_config(usual()),
            R"({"id_hash":"xxh3-48","key_prefix":"fcap","null_user_ids":["0","null"],)"
            R"("reservation":{"max_life_ms":900000},"retention_ms":2764800000,)"
            R"("write_format":3})");
  EXPECT_EQ(config_key("fcap"), "fcap:!config");
}

constexpr const char* kWithGaps =
    R"({"id_hash":"xxh3-48","key_prefix":"fcap",)"
    R"("missing_before_ms":{"fcap-updater:impressions":{"0":1700000000123,"11":1700000300123}},)"
    R"("null_user_ids":["0","null"],"reservation":{"max_life_ms":900000},"retention_ms":2764800000,)"
    R"("write_format":3})";

ConfigRecord with_gaps() {
  ConfigRecord record = usual();
  record.missing_before = {
      {"fcap-updater:impressions",
       {{"0", instant_from_ms(1'700'000'000'123)}, {"11", instant_from_ms(1'700'000'300'123)}}}};
  return record;
}

TEST(ConfigRecord, SaysWhatMayBeReservedAndHowLongARecordMayBe) {
  ConfigRecord record = usual();
  record.reservation_life_max = std::chrono::minutes{5};
  record.record_bytes_max = 4096;
  const auto parsed = parse_config(encode_config(record));
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value(), record);
}

TEST(ConfigRecord, NamesThePartitionsWithOpenGapsAndBeforeWhenTheyLackEvents) {
  EXPECT_EQ(encode_config(with_gaps()), kWithGaps);
  const auto parsed = parse_config(kWithGaps);
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value(), with_gaps());
  EXPECT_EQ(parsed.value().missing_by_slot(),
            (std::vector<MissingEvents>{instant_from_ms(1'700'000'300'123)}));
  EXPECT_TRUE(usual().missing_by_slot().empty());
}

// It is the value's own, and no setting.
TEST(ConfigRecord, SaysWhenItWasCreatedIfThatIsKnown) {
  const Instant created = instant_from_ms(1'700'000'000'000);
  const std::string text = with_created(kWithGaps, created);
  const auto parsed = parse_config(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value().created, created);
  EXPECT_EQ(parse_config(with_missing_before(text, {})).value().created, created);
  ConfigRecord record = with_gaps();
  record.created = created;
  EXPECT_EQ(encode_config(record), text);
  EXPECT_EQ(with_created(text, {}), kWithGaps);
}

// docs/keys.md has these bytes.
constexpr const char* kWithSlots =
    R"({"id_hash":"xxh3-48","key_prefix":"fcap",)"
    R"("missing_before_ms":{"fcap-updater:impressions":{"0":1700000000123,"11":1700000300123}},)"
    R"("missing_slots":{"fcap-updater:impressions":{"0":{"1700000000123":"5461-10922,16000"}}},)"
    R"("null_user_ids":["0","null"],"reservation":{"max_life_ms":900000},"retention_ms":2764800000,)"
    R"("write_format":3})";

SlotSet some_slots() {
  return SlotSet(5461, 10'922) | SlotSet(16'000, 16'000);
}

TEST(ConfigRecord, NamesTheSlotsOfPartitionsThatDoNotLackEventsOfAllUsers) {
  ConfigRecord record = with_gaps();
  record.missing_before["fcap-updater:impressions"]["0"].slots = some_slots();
  EXPECT_EQ(encode_config(record), kWithSlots);
  const auto parsed = parse_config(kWithSlots);
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value(), record);
  EXPECT_EQ(with_missing_before(kWithSlots, with_gaps().missing_before), kWithGaps);
  EXPECT_EQ(with_missing_before(kWithGaps, record.missing_before), kWithSlots);
  EXPECT_EQ(with_missing_before(kWithSlots, {}), encode_config(usual()));
}

TEST(ConfigRecord, GivesEachSlotTheLatestInstantOfAllPartitions) {
  constexpr Instant kThen = instant_from_ms(1'700'000'000'000);
  constexpr std::chrono::hours kHour{1};
  ConfigRecord record = usual();
  record.missing_before["g:t"]["0"] = {kThen, {0, 99}};
  record.missing_before["g:t"]["1"] = {kThen + kHour, {50, 149}};
  record.missing_before["h:t"]["0"] = {kThen + kHour, {300, 300}};
  record.missing_before["h:t"]["1"] = {kThen - kHour, {0, 400}};
  EXPECT_EQ(record.missing_by_slot(),
            (std::vector<MissingEvents>{{kThen + kHour, SlotSet(50, 149) | SlotSet(300, 300)},
                                        {kThen, {0, 49}},
                                        {kThen - kHour, SlotSet(150, 299) | SlotSet(301, 400)}}));
  // A statement about everybody is about what the others leave out, too.
  record.missing_before["i:t"]["0"] = kThen;
  EXPECT_EQ(record.missing_by_slot(),
            (std::vector<MissingEvents>{
                {kThen + kHour, SlotSet(50, 149) | SlotSet(300, 300)},
                {kThen, SlotSet::all() - (SlotSet(50, 149) | SlotSet(300, 300))}}));
}

TEST(ConfigRecord, SlotsOfAWrongFormAreRefused) {
  for (const char* slots :
       {"1", "[]", R"({"g:t":1})", R"({"g:t":{"0":1}})", R"({"g:t":{"0":"1"}})",
        R"({"g:t":{"0":{"1":1}}})", R"({"g:t":{"0":{"1":[]}}})", R"({"g:t":{"0":{"1":""}}})",
        R"({"g:t":{"0":{"1":"0-16384"}}})", R"({"g:t":{"0":{"1":"5-4"}}})",
        R"({"g:t":{"0":{"1":"1,1"}}})", R"({"of others":{"0":{"7":"x"}}})"}) {
    ConfigRecord record = usual();
    record.missing_before["g:t"]["0"] = instant_from_ms(1);
    std::string text = encode_config(record);
    text.insert(1, std::string("\"missing_slots\":") + slots + ",");
    EXPECT_EQ(parse_config(text).status().code(), StatusCode::kCorrupt) << text;
  }
}

TEST(ConfigRecord, SlotsOfAnEarlierInstantSayNothing) {
  std::string text = kWithSlots;
  text.replace(text.find("1700000000123"), 13, "1700000000124");
  const auto parsed = parse_config(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  ConfigRecord expected = with_gaps();
  expected.missing_before["fcap-updater:impressions"]["0"] = instant_from_ms(1'700'000'000'124);
  EXPECT_EQ(parsed.value(), expected);
}

TEST(ConfigRecord, SlotsWithoutAnInstantSayNothing) {
  std::string text = encode_config(with_gaps());
  text.insert(
      1, R"("missing_slots":{"fcap-updater:impressions":{"1":{"1":"0"}},"g:t":{"0":{"1":"0"}}},)");
  const auto parsed = parse_config(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value(), with_gaps());
}

TEST(ConfigRecord, GapsAreReplacedAndWhatIsNotKnownStays) {
  std::string text = encode_config(with_gaps());
  const std::string later = R"("later":{"a":[1]},)";
  text.insert(text.find("\"missing"), later);
  const std::string closed = with_missing_before(text, {});
  std::string expected = encode_config(usual());
  expected.insert(expected.find("\"null"), later);
  EXPECT_EQ(closed, expected);
  EXPECT_EQ(with_missing_before(closed, with_gaps().missing_before), text);
}

TEST(ConfigRecord, GapsOfAWrongFormAreRefused) {
  for (const char* gaps : {"1", "[]", R"({"g:t":1})", R"({"g:t":{"0":"1"}})", R"({"g:t":{"0":-1}})",
                           R"({"g:t":{"0":1.5}})", R"({"g:t":{"0":18446744073709551615}})"}) {
    std::string text = encode_config(usual());
    text.insert(1, std::string("\"missing_before_ms\":") + gaps + ",");
    EXPECT_EQ(parse_config(text).status().code(), StatusCode::kCorrupt) << text;
  }
}

TEST(ConfigRecord, OneThatIsNestedDeeplyIsRefusedBeforeItIsWrittenAgain) {
  for (const std::size_t depth : {std::size_t{10}, std::size_t{30'000}}) {
    std::string text = encode_config(usual());
    text.insert(1, "\"later\":" + std::string(depth, '[') + std::string(depth, ']') + ",");
    EXPECT_EQ(parse_config(text).ok(), depth == 10);
    EXPECT_EQ(with_missing_before(text, {}).size(), text.size());
  }
}

TEST(ConfigRecord, HasRoomForTheGapsOfManyPartitions) {
  for (const bool of_one_shard : {false, true}) {
    ConfigRecord record = usual();
    auto& partitions = record.missing_before[missing_before_name("fcap-updater", "impressions")];
    for (int i = 0; i < (of_one_shard ? 1000 : 3000); ++i) {
      partitions[std::to_string(i)] = instant_from_ms(1'700'000'000'000 + i);
      if (of_one_shard) partitions[std::to_string(i)].slots = {5461, 10'922};
    }
    const auto parsed = parse_config(encode_config(record));
    ASSERT_TRUE(parsed.ok()) << parsed.status().text();
    EXPECT_EQ(parsed.value(), record);
  }
}

TEST(ConfigRecord, AGroupIdThatIsNoUtf8NamesItsGapsAsTheyAreReadAgain) {
  ConfigRecord record = usual();
  record.missing_before[missing_before_name("\xff", "t")]["0"] = instant_from_ms(1);
  const auto parsed = parse_config(encode_config(record));
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value(), record);
}

TEST(ConfigRecord, WhatAgreesHasNoDifferences) {
  EXPECT_EQ(config_differences(usual(), expected()), "");
}

TEST(ConfigRecord, EachDifferenceIsNamedWithBothSides) {
  ExpectedConfig here = expected();
  here.retention = milliseconds{1500};
  here.null_user_ids = {"0"};
  const std::string text = config_differences(usual(), here);
  EXPECT_EQ(text,
            "retention: 32 d in the writer, 1500 ms here; "
            R"(null_user_ids: ["0","null"] in the writer, ["0"] here)");
}

TEST(ConfigRecord, IdsThatAreNoUtf8AgreeWithThemselves) {
  ConfigRecord record = usual();
  record.null_user_ids = {"\xff\xfe"};
  ExpectedConfig here = expected();
  here.null_user_ids = record.null_user_ids;
  const auto parsed = parse_config(encode_config(record));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(config_differences(parsed.value(), here), "");
}

TEST(ConfigRecord, WhatIsNoneIsRefusedWithTheReason) {
  for (const char* text : {"", "x", "[]", "{}", R"({"write_format":3})", R"({"write_format":"3"})",
                           R"({"key_prefix":1,"retention_ms":1,"id_hash":"","null_user_ids":[],)"
                           R"("reservation":{"max_life_ms":1},"write_format":3})"}) {
    EXPECT_EQ(parse_config(text).status().code(), StatusCode::kCorrupt) << text;
  }
  const std::string text = encode_config(usual());
  for (const char* without : {R"("reservation":{"max_life_ms":900000},)", "900000"}) {
    std::string changed = text;
    changed.replace(changed.find(without), std::string_view(without).size(),
                    without == std::string_view("900000") ? "0" : "");
    EXPECT_EQ(parse_config(changed).status().code(), StatusCode::kCorrupt) << changed;
  }
}

TEST(ConfigRecord, ARecordFormatThatIsNotKnownIsRefusedWithWhatToDo) {
  const Status older = parse_config(R"({"version":1,"write_format":2})").status();
  EXPECT_EQ(older.code(), StatusCode::kRefused);
  EXPECT_EQ(older.text(),
            "the recorded configuration has write_format 2, from before the first release: delete "
            "it");
  const Status later = parse_config(R"({"write_format":4})").status();
  EXPECT_EQ(later.code(), StatusCode::kRefused);
  EXPECT_EQ(later.text(),
            "the recorded configuration has write_format 4, which this release cannot read: "
            "install the release that wrote it");
}

TEST(ConfigRecord, AFieldOfALaterReleaseIsPassedOver) {
  std::string text = encode_config(usual());
  text.insert(1, R"("later":{"a":[1]},)");
  const auto parsed = parse_config(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status().text();
  EXPECT_EQ(parsed.value(), usual());
}

TEST(KeyPrefix, HasNoCharacterThatKeysSlotsOrPatternsNeed) {
  EXPECT_TRUE(check_key_prefix("fcap").ok());
  EXPECT_TRUE(check_key_prefix("ads:eu-1/fcap").ok());
  for (const char* wrong : {"", "a!", "a{", "a}", "a*", "a?", "a[", "a]", "a\\"}) {
    EXPECT_FALSE(check_key_prefix(wrong).ok()) << wrong;
  }
  EXPECT_FALSE(check_key_prefix(std::string(65, 'a')).ok());
  for (const std::string_view wrong : {"a\n", "\ta", "a\x7f", "a\x1b[2J"}) {
    EXPECT_FALSE(check_key_prefix(wrong).ok()) << wrong;
  }
}

}  // namespace config_record_test
}  // namespace fcap::redis
