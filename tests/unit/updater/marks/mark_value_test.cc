#include "updater/marks/mark_value.h"

#include <fstream>
#include <random>
#include <sstream>

#include <gtest/gtest.h>

#include "test_paths.h"
#include "tests/support/seed.h"

namespace fcap::updater {
namespace mark_value_test {

struct GoldenMark {
  std::string text;
  MarkValue value;
};

const std::vector<GoldenMark>& golden_marks() {
  static const std::vector<GoldenMark> all{
      {"4 0", {.position = 0}},
      {"4 1500 cluster=MkU3OEVBNTcwNTJENDM2Qk last=1499,1700000000123,71a95b0def43ba51",
       {.position = 1500,
        .log = {.cluster = "MkU3OEVBNTcwNTJENDM2Qk",
                .last = LogPoint{1499, 1'700'000'000'123, 0x71a95b0def43ba51}}}},
      {"4 90000 cluster=MkU3OEVBNTcwNTJENDM2Qk last=89997,-1,00000000000000ff "
       "checked=1499,1700000000123,71a95b0def43ba51 gaps=100-200,300-80000",
       {.position = 90000,
        .log = {.cluster = "MkU3OEVBNTcwNTJENDM2Qk",
                .last = LogPoint{89997, -1, 0xff},
                .checked = LogPoint{1499, 1'700'000'000'123, 0x71a95b0def43ba51}},
        .gaps = {{100, 200}, {300, 80000}}}},
      {"4 1500 node=07c37dfeb235213a872192d90877d0cd55635b91 "
       "replication=e00f0b6d8a5b1a4f3c2d1e0f9a8b7c6d5e4f3a2b arrivals=safe serial=12 "
       "places=5455,2735 slots=0-5460,7000 partly=6999 cluster=MkU3OEVBNTcwNTJENDM2Qk "
       "last=1499,1700000000123,71a95b0def43ba51 gaps=100-200",
       {.position = 1500,
        .log = {.cluster = "MkU3OEVBNTcwNTJENDM2Qk",
                .last = LogPoint{1499, 1'700'000'000'123, 0x71a95b0def43ba51}},
        .gaps = {{100, 200}},
        .shard = MarkedShard{.node = "07c37dfeb235213a872192d90877d0cd55635b91",
                             .replication = "e00f0b6d8a5b1a4f3c2d1e0f9a8b7c6d5e4f3a2b",
                             .arrivals_safe = true,
                             .serial = 12,
                             .places = {5455, 2735},
                             .slots = SlotSet(0, 5460) | SlotSet(7000, 7000),
                             .partly = SlotSet(6999, 6999)}}},
  };
  return all;
}

TEST(GoldenMark, IsWrittenAndReadAsDescribed) {
  for (const GoldenMark& golden : golden_marks()) {
    EXPECT_EQ(encode_mark(golden.value), golden.text);
    EXPECT_EQ(decode_mark(golden.text), golden.value) << golden.text;
  }
}

TEST(GoldenMark, DocumentationShowsTheseBytes) {
  std::ifstream file(std::string(FCAP_SOURCE_DIR) + "/docs/keys.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const GoldenMark& golden : golden_marks()) {
    EXPECT_NE(text.str().find("    " + golden.text + "\n"), std::string::npos) << golden.text;
  }
  EXPECT_NE(text.str().find("71a95b0def43ba51"), std::string::npos);
}

TEST(GoldenMark, AMessagesHashIsOfItsPayloadAndItsKey) {
  EXPECT_EQ(hash_message("u1", R"({"user_id":"u1"})"), 0x71a95b0def43ba51U);
  EXPECT_NE(hash_message("u1x", "y"), hash_message("u1", "xy"));
  EXPECT_EQ(hash_message({}, {}), hash_message("", ""));
}

TEST(GoldenMark, KeysAreThoseOfTheDocumentation) {
  EXPECT_EQ(mark_key("fcap", "fcap-updater", "impressions", 7),
            "fcap:!mark:{0}:fcap-updater:impressions:7");
  EXPECT_EQ(tagged_mark_key("fcap", "3552", "fcap-updater:impressions:7"),
            "fcap:!mark:{3552}:fcap-updater:impressions:7");
}

TEST(MarkValue, WhatIsWrittenOtherwiseIsNoMark) {
  const std::vector<std::string> strange{
      "",
      "4",
      "4 ",
      "1500",
      "2 1500",
      "3 1500",
      "5 1500",
      "4  1500",
      "4 01500",
      "4 +1500",
      "4 -1",
      "4 1500 ",
      "4 99999999999999999999",
      "4 1500 cluster=",
      "4 1500 cluster=a b",
      "4 1500 planet=earth",
      "4 1500 last=1500,0,00000000000000ff",
      "4 1500 last=-1,0,00000000000000ff",
      "4 1500 last=1499,-2,00000000000000ff",
      "4 1500 last=1499,0,ff",
      "4 1500 last=1499,0,00000000000000FF",
      "4 1500 last=1499,0",
      "4 1500 checked=7,0,00000000000000ff",
      "4 1500 last=6,0,00000000000000ff checked=7,0,00000000000000ff",
      "4 1500 checked=6,0,00000000000000ff last=7,0,00000000000000ff",
      "4 1500 last=7,0,00000000000000ff cluster=a",
      "4 1500 gaps=",
      "4 1500 gaps=5",
      "4 1500 gaps=5-5",
      "4 1500 gaps=5-1501",
      "4 1500 gaps=5-10,10-12",
      "4 1500 gaps=5-10,7-12",
      "4 1500 gaps=-5-10",
      "4 1500 node=a replication=b arrivals=safe",
      "4 1500 node=a arrivals=safe serial=1",
      "4 1500 node= replication=b arrivals=safe serial=1",
      "4 1500 node=a replication=b arrivals=sure serial=1",
      "4 1500 node=a replication=b arrivals=safe serial=-1",
      "4 1500 node=a replication=b arrivals=safe serial=1 slots=",
      "4 1500 node=a replication=b arrivals=safe serial=1 slots=5-16384",
      "4 1500 node=a replication=b arrivals=safe slots=1 serial=1",
      "4 1500 gaps=1-2,4-5,7-8,10-11,13-14,16-17,19-20,22-23,25-26",
  };
  for (const std::string& text : strange) EXPECT_FALSE(decode_mark(text)) << text;
}

TEST(MarkValueDeathTest, AMarkThatCouldNotBeReadIsNotWritten) {
  const std::vector<std::vector<Gap>> strange{
      {{300, 400}, {100, 200}},  // not ascending
      {{100, 200}, {200, 300}},  // not apart
      {{100, 1501}},             // beyond the position
      std::vector<Gap>(MarkValue::kGapsMax + 1, {1, 2}),
  };
  for (const std::vector<Gap>& gaps : strange) {
    EXPECT_EXIT((void)encode_mark({.position = 1500, .gaps = gaps}),
                ::testing::KilledBySignal(SIGABRT), "");
  }
}

TEST(MarkValue, IsCompleteBelowItsFirstGap) {
  EXPECT_EQ(decode_mark("4 1500")->complete_below(), 1500);
  EXPECT_EQ(decode_mark("4 1500 gaps=100-200,300-400")->complete_below(), 100);
}

TEST(MarkValue, AStrangeClusterIdIsHashed) {
  EXPECT_EQ(cluster_word("MkU3OEVBNTcwNTJENDM2Qk"), "MkU3OEVBNTcwNTJENDM2Qk");
  EXPECT_EQ(cluster_word(""), "");
  for (const std::string& id : {std::string("with space"), std::string(65, 'x')}) {
    const std::string word = cluster_word(id);
    EXPECT_TRUE(word.starts_with("xxh3:"));
    EXPECT_TRUE(decode_mark("4 0 cluster=" + word));
  }
}

TEST(MarkValue, SomeByteChangedIsNeverTakenForTheSame) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 20'000; ++round) {
    const GoldenMark& golden = golden_marks()[random() % golden_marks().size()];
    std::string text = golden.text;
    text[random() % text.size()] = static_cast<char>(' ' + random() % 95);
    const auto read = decode_mark(text);
    if (read) {
      EXPECT_EQ(encode_mark(*read), text);
    }
    EXPECT_EQ(read == golden.value, text == golden.text) << text;
  }
}

}  // namespace mark_value_test
}  // namespace fcap::updater
