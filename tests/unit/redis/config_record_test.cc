#include "redis/config_record.h"

#include <gtest/gtest.h>

namespace fcap::redis {
namespace {

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
            R"("reservation":{"max_life_ms":0},"retention_ms":2764800000,"version":1,)"
            R"("write_format":1})");
  EXPECT_EQ(config_key("fcap"), "fcap:!config");
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
  for (const char* text : {"", "x", "[]", "{}", R"({"version":1})", R"({"version":"1"})",
                           R"({"version":1,"key_prefix":1,"retention_ms":1,"id_hash":"",)"
                           R"("null_user_ids":[],"write_format":1})"}) {
    EXPECT_EQ(parse_config(text).status().code(), StatusCode::kCorrupt) << text;
  }
  EXPECT_NE(parse_config(R"({"version":2})").status().text().find("version 2"), std::string::npos);
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
}

}  // namespace
}  // namespace fcap::redis
