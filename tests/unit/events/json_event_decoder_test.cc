#include <memory>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "events/event_decoder.h"

namespace fcap::events {
namespace json_event_decoder_test {

class JsonEvent : public ::testing::Test {
 protected:
  // "ok", or the rejection and its member.
  std::string decode(std::string_view message) {
    // An own allocation of just this size, so that a read beyond it is seen by ASan.
    const std::unique_ptr<char[]> exact(new char[message.size()]);
    message.copy(exact.get(), message.size());
    event_ = {};
    const auto rejected = decoder_->decode_one({exact.get(), message.size()}, event_);
    if (!rejected) return "ok";
    std::string text(to_string(rejected->reason));
    if (!rejected->member.empty()) text.append(" ").append(rejected->member);
    return text;
  }

  // A message with these members besides, or instead of, the usual ones.
  static std::string with(const std::string& members) {
    return R"({"user_id":"u1","campaign_id":"c1","timestamp":1700000000,"imp_id":"i1",)" + members +
           "}";
  }

  std::unique_ptr<EventDecoder> decoder_ = make_json_event_decoder();
  Event event_;
};

TEST_F(JsonEvent, PlainImpression) {
  ASSERT_EQ(decode(R"({"user_id":"u123","campaign_id":"c456","timestamp":1700000000,)"
                   R"("imp_id":"uuid"})"),
            "ok");
  EXPECT_EQ(event_.kind, Event::Kind::kSeen);
  EXPECT_EQ(event_.user_id, "u123");
  EXPECT_EQ(event_.campaign_id, "c456");
  EXPECT_EQ(event_.creative_id, "");
  EXPECT_EQ(event_.type, EventType::kImpression);
  EXPECT_EQ(event_.event_id, "uuid");
  EXPECT_EQ(to_ms(event_.time), 1'700'000'000'000);
}

TEST_F(JsonEvent, EveryMember) {
  ASSERT_EQ(decode(with(R"("creative_id":"cr9","type":"click","event_id":"e7","sig":"00ff")")),
            "ok");
  EXPECT_EQ(event_.creative_id, "cr9");
  EXPECT_EQ(event_.type, EventType::kClick);
  EXPECT_EQ(event_.event_id, "e7");
}

TEST_F(JsonEvent, EveryType) {
  ASSERT_EQ(decode(with(R"("type":"impression")")), "ok");
  EXPECT_EQ(event_.type, EventType::kImpression);
  ASSERT_EQ(decode(with(R"("type":"viewable")")), "ok");
  EXPECT_EQ(event_.type, EventType::kViewable);
  ASSERT_EQ(decode(with(R"("type":"conversion")")), "ok");
  EXPECT_EQ(event_.type, EventType::kConversion);
  EXPECT_EQ(decode(with(R"("type":"Click")")), "unknown_type type");
  EXPECT_EQ(decode(with(R"("type":"")")), "unknown_type type");
  EXPECT_EQ(decode(with(R"("type":1)")), "wrong_type type");
}

TEST_F(JsonEvent, ErasureNeedsUserAndTimeOnly) {
  ASSERT_EQ(decode(R"({"type":"erasure","user_id":"u1","timestamp":1700000000})"), "ok");
  EXPECT_EQ(event_.kind, Event::Kind::kErasure);
  EXPECT_EQ(event_.user_id, "u1");
  EXPECT_EQ(to_ms(event_.time), 1'700'000'000'000);
  ASSERT_EQ(decode(with(R"("type":"erasure","creative_id":"x")")), "ok");
  EXPECT_EQ(event_.campaign_id, "");
  EXPECT_EQ(event_.creative_id, "");
  EXPECT_EQ(decode(R"({"type":"erasure","timestamp":1700000000})"), "missing_member user_id");
  EXPECT_EQ(decode(R"({"type":"erasure","user_id":"u1"})"), "missing_member timestamp");
}

TEST_F(JsonEvent, EventIdStandsInForAMissingImpressionId) {
  ASSERT_EQ(decode(R"({"user_id":"u","campaign_id":"c","timestamp":1,"event_id":"e"})"), "ok");
  EXPECT_EQ(event_.event_id, "e");
  EXPECT_EQ(decode(R"({"user_id":"u","campaign_id":"c","timestamp":1})"), "missing_member imp_id");
  EXPECT_EQ(decode(R"({"user_id":"u","campaign_id":"c","timestamp":1,"imp_id":""})"),
            "missing_member imp_id");
}

TEST_F(JsonEvent, MissingMembersAreNamed) {
  EXPECT_EQ(decode("{}"), "missing_member user_id");
  EXPECT_EQ(decode(R"({"user_id":"u","imp_id":"i","timestamp":1})"), "missing_member campaign_id");
  EXPECT_EQ(decode(R"({"user_id":"u","imp_id":"i","campaign_id":"c"})"),
            "missing_member timestamp");
}

TEST_F(JsonEvent, NullIsAbsentAndANullUserIsNobody) {
  ASSERT_EQ(decode(with(R"("creative_id":null,"type":null,"event_id":null)")), "ok");
  EXPECT_EQ(event_.creative_id, "");
  EXPECT_EQ(event_.event_id, "i1");
  EXPECT_EQ(event_.type, EventType::kImpression);
  EXPECT_EQ(decode(with(R"("campaign_id":null)")), "missing_member campaign_id");
  EXPECT_EQ(decode(with(R"("timestamp":null)")), "missing_member timestamp");
  ASSERT_EQ(decode(with(R"("user_id":null)")), "ok");
  EXPECT_EQ(event_.user_id, "");
  ASSERT_EQ(decode(with(R"("user_id":"")")), "ok");
  EXPECT_EQ(event_.user_id, "");
}

TEST_F(JsonEvent, WrongTypesAreNamed) {
  EXPECT_EQ(decode(with(R"("user_id":123)")), "wrong_type user_id");
  EXPECT_EQ(decode(with(R"("campaign_id":["c"])")), "wrong_type campaign_id");
  EXPECT_EQ(decode(with(R"("creative_id":{})")), "wrong_type creative_id");
  EXPECT_EQ(decode(with(R"("imp_id":true)")), "wrong_type imp_id");
  EXPECT_EQ(decode(with(R"("event_id":1.5)")), "wrong_type event_id");
  EXPECT_EQ(decode(with(R"("timestamp":"1700000000")")), "wrong_type timestamp");
}

TEST_F(JsonEvent, TheLastOfSeveralEqualMembersCounts) {
  ASSERT_EQ(decode(with(R"("campaign_id":"c2","imp_id":"i2","timestamp":1700000001)")), "ok");
  EXPECT_EQ(event_.campaign_id, "c2");
  EXPECT_EQ(event_.event_id, "i2");
  EXPECT_EQ(to_ms(event_.time), 1'700'000'001'000);
  EXPECT_EQ(decode(with(R"("campaign_id":7,"campaign_id":"c3")")), "ok");
}

TEST_F(JsonEvent, IdsHoldUpTo256Bytes) {
  const std::string longest(256, 'x');
  ASSERT_EQ(decode(with("\"campaign_id\":\"" + longest + "\"")), "ok");
  EXPECT_EQ(event_.campaign_id, longest);
  for (const std::string name : {"user_id", "campaign_id", "creative_id", "imp_id", "event_id"}) {
    const std::string member = std::string("\"").append(name).append("\":\"").append(longest);
    EXPECT_EQ(decode(with(member + "y\"")), "id_too_long " + name);
  }
  // 129 characters, 258 bytes.
  std::string umlauts;
  for (int i = 0; i < 129; ++i) umlauts += "\u00fc";
  EXPECT_EQ(decode(with("\"user_id\":\"" + umlauts + "\"")), "id_too_long user_id");
}

TEST_F(JsonEvent, EscapesAreTheirCharacters) {
  ASSERT_EQ(decode(with(R"("campaign_id":"a\"b\\c\/d\u00e9\ud83d\ude00\n")")), "ok");
  EXPECT_EQ(event_.campaign_id, "a\"b\\c/d\u00e9\U0001F600\n");
  ASSERT_EQ(decode(with(R"("campaign\u005fid":"c9")")), "ok");
  EXPECT_EQ(event_.campaign_id, "c9");
  ASSERT_EQ(decode(with(R"("campaign_id":"a\u0000b")")), "ok");
  EXPECT_EQ(event_.campaign_id, std::string_view("a\0b", 3));
  EXPECT_EQ(decode(with(R"("campaign_id":"\ud800")")), "not_json");
  EXPECT_EQ(decode(with(R"("campaign_id":"\q")")), "not_json");
  EXPECT_EQ(decode(with(R"("x":"\q")")), "not_json");
}

TEST_F(JsonEvent, TimestampsByTheRules) {
  EXPECT_EQ(decode(with(R"("timestamp":0)")), "bad_timestamp timestamp");
  EXPECT_EQ(decode(with(R"("timestamp":-5)")), "bad_timestamp timestamp");
  EXPECT_EQ(decode(with(R"("timestamp":1e400)")), "bad_timestamp timestamp");
  ASSERT_EQ(decode(with(R"("timestamp":1700000000.9999)")), "ok");
  EXPECT_EQ(to_ms(event_.time), 1'700'000'000'999);
  ASSERT_EQ(decode(with(R"("timestamp":1700000000123)")), "ok");
  EXPECT_EQ(to_ms(event_.time), 1'700'000'000'123);
}

TEST_F(JsonEvent, UnknownMembersAreIgnoredWhateverTheyHold) {
  EXPECT_EQ(
      decode(with(
          R"("a":{"user_id":7,"b":[1,{"c":[]},null,true,1e400]},"z":123456789012345678901234567890)")),
      "ok");
  EXPECT_EQ(event_.user_id, "u1");
}

TEST_F(JsonEvent, TheWholeMessageMustBeJson) {
  for (const char* message : {"",
                              " ",
                              "x",
                              "{",
                              "}",
                              "{]",
                              "[",
                              "[1,]",
                              "{\"a\":}",
                              "{\"a\"}",
                              "{\"a\":1,}",
                              "{,}",
                              "tru",
                              "nul",
                              "01",
                              "\"abc",
                              "{\"a\":1}{\"a\":1}",
                              "{} x",
                              "{}}",
                              "[1][2]",
                              "1 2",
                              "\"a\" 1",
                              "{\"a\":tru}",
                              "{\"a\":nulll}",
                              "{\"a\":01}",
                              "{\"a\":1 2}",
                              "{\"a\":[1 2]}",
                              "{\"a\":[1}",
                              "{\"a\":{\"b\":1]}",
                              "{a:1}",
                              "{'a':1}",
                              "{\"a\":NaN}",
                              "{\"a\":+1}",
                              "{\"a\" 1}",
                              "{\"a\":1 \"b\":2}",
                              "{\"a\":\"\t\"}",
                              "/**/{}",
                              "\xef\xbb\xbf{}"}) {
    EXPECT_EQ(decode(message), "not_json") << message;
  }
  EXPECT_EQ(decode(std::string_view("{}\0", 3)), "not_json");
  EXPECT_EQ(decode(with("\"a\":\"\xff\"")), "not_json");
  EXPECT_EQ(decode(with("\"a\":1") + ","), "not_json");
  EXPECT_EQ(decode(" \t\r\n" + with("\"a\":1") + " \t\r\n"), "ok");
}

TEST_F(JsonEvent, OtherJsonIsNotAnObject) {
  for (const char* message : {"[]", "[1,[2]]", "\"text\"", "1", "-1.5e7", "true", "false", "null",
                              " null ", "[{\"user_id\":\"u\"}]"}) {
    EXPECT_EQ(decode(message), "not_an_object") << message;
  }
}

TEST_F(JsonEvent, DeepNestingIsRefusedNotFollowed) {
  const auto nested = [&](std::size_t depth) {
    return with("\"a\":" + std::string(depth, '[') + std::string(depth, ']'));
  };
  EXPECT_EQ(decode(nested(60)), "ok");
  EXPECT_EQ(decode(nested(100)), "not_json");
  EXPECT_EQ(decode(nested(1'000'000)), "not_json");
  EXPECT_EQ(decode(std::string(1'000'000, '[')), "not_json");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(decode(objects), "not_json");
}

TEST_F(JsonEvent, ALargeMessageDoesNotDisturbTheNext) {
  EXPECT_EQ(decode(with("\"a\":\"" + std::string(3'000'000, 'x') + "\"")), "ok");
  EXPECT_EQ(decode(with("\"b\":1")), "ok");
  EXPECT_EQ(event_.user_id, "u1");
}

}  // namespace json_event_decoder_test
}  // namespace fcap::events
