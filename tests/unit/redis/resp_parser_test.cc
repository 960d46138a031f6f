#include "redis/resp_parser.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <hiredis/hiredis.h>

#include "tests/support/seed.h"

namespace fcap::redis {
namespace resp_parser_test {

using Outcome = RespParser::ParseOutcome;

// A reply as text, so that two parsers can be compared.
std::string shown(const Reply& reply) {
  switch (reply.kind) {
    case Reply::Kind::kOversized:
      return "oversized";
    case Reply::Kind::kNil:
      return "nil";
    case Reply::Kind::kInteger:
      return "int " + std::to_string(reply.integer);
    case Reply::Kind::kString:
      return "string <" + std::string(reply.text) + ">";
    case Reply::Kind::kStatus:
      return "status <" + std::string(reply.text) + ">";
    case Reply::Kind::kError:
      return "error <" + std::string(reply.text) + ">";
    case Reply::Kind::kArray:
      break;
  }
  std::string text = "[";
  for (const Reply& element : reply.elements) text += shown(element) + ",";
  return text + "]";
}

std::string shown(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_NIL:
      return "nil";
    case REDIS_REPLY_INTEGER:
      return "int " + std::to_string(reply.integer);
    case REDIS_REPLY_STRING:
      return "string <" + std::string(reply.str, reply.len) + ">";
    case REDIS_REPLY_STATUS:
      return "status <" + std::string(reply.str, reply.len) + ">";
    case REDIS_REPLY_ERROR:
      return "error <" + std::string(reply.str, reply.len) + ">";
    default:
      break;
  }
  std::string text = "[";
  for (std::size_t i = 0; i < reply.elements; ++i) text += shown(*reply.element[i]) + ",";
  return text + "]";
}

std::string parsed(std::string_view bytes) {
  RespParser parser;
  switch (parser.parse(bytes)) {
    case Outcome::kNeedMore:
      return "more";
    case Outcome::kMalformed:
      return "malformed";
    case Outcome::kReply:
      break;
  }
  return shown(parser.reply()) + " of " + std::to_string(parser.length_bytes());
}

// As the connection does it: what is passed over is taken out as it comes.
std::vector<Reply::Kind> kinds_in_pieces(std::string_view bytes, std::size_t piece,
                                         std::size_t& held_max) {
  RespParser parser;
  std::string held;
  std::vector<Reply::Kind> kinds;
  for (std::size_t at = 0;;) {
    switch (parser.parse(held)) {
      case Outcome::kReply:
        kinds.push_back(parser.reply().kind);
        for (const Reply& element : parser.reply().elements) kinds.push_back(element.kind);
        held.erase(0, parser.length_bytes());
        continue;
      case Outcome::kMalformed:
        ADD_FAILURE();
        return kinds;
      case Outcome::kNeedMore:
        break;
    }
    if (parser.skip_left() > 0 && parser.skip_at() < held.size()) {
      const std::size_t dropped = std::min(parser.skip_left(), held.size() - parser.skip_at());
      held.erase(parser.skip_at(), dropped);
      parser.skipped(dropped);
      continue;
    }
    if (at == bytes.size()) return kinds;
    held += bytes.substr(at, piece);
    at = std::min(bytes.size(), at + piece);
    held_max = std::max(held_max, held.size());
  }
}

TEST(RespParser, AnOversizedStringIsPassedOverAndHurtsNoOtherReply) {
  using Kind = Reply::Kind;
  const std::size_t bytes = (std::size_t{1} << 20U) + 1;
  const std::string oversized =
      "$" + std::to_string(bytes) + "\r\n" + std::string(bytes, '\r') + "\r\n";
  const std::string wire =
      "*3\r\n$1\r\na\r\n" + oversized + "$1\r\nb\r\n:7\r\n" + oversized + "+OK\r\n";
  for (const std::size_t piece : {std::size_t{1000}, std::size_t{65'536}, wire.size()}) {
    std::size_t held_max = 0;
    EXPECT_EQ(kinds_in_pieces(wire, piece, held_max),
              (std::vector<Kind>{Kind::kArray, Kind::kString, Kind::kOversized, Kind::kString,
                                 Kind::kInteger, Kind::kOversized, Kind::kStatus}))
        << piece;
    EXPECT_LE(held_max, piece + 1000);
  }
}

TEST(RespParser, ReadsEachKind) {
  EXPECT_EQ(parsed("+OK\r\n"), "status <OK> of 5");
  EXPECT_EQ(parsed("-ERR no\r\n"), "error <ERR no> of 9");
  EXPECT_EQ(parsed(":-42\r\n"), "int -42 of 6");
  EXPECT_EQ(parsed("$3\r\na\r\n\r\n"), "string <a\r\n> of 9");
  EXPECT_EQ(parsed("$3\r\nabc\r\n:1\r\n"), "string <abc> of 9");
  EXPECT_EQ(parsed("$0\r\n\r\n"), "string <> of 6");
  EXPECT_EQ(parsed("$-1\r\n"), "nil of 5");
  EXPECT_EQ(parsed("*-1\r\n"), "nil of 5");
  EXPECT_EQ(parsed("*0\r\n"), "[] of 4");
  EXPECT_EQ(parsed("*3\r\n*1\r\n:1\r\n$-1\r\n*2\r\n+a\r\n*0\r\n"),
            "[[int 1,],nil,[status <a>,[],],] of 29");
}

TEST(RespParser, RefusesWhatIsNoReply) {
  for (const std::string_view bytes :
       {"x", "HTTP/1.1 400 Bad Request\r\n", ":\r\n", ":1x\r\n", ":+1\r\n",
        ":99999999999999999999\r\n", "$-2\r\n", "*-2\r\n", "$x\r\n", "$3\r\nabcd\r", "$3\r\nabc\rx",
        "+OK\rx", "*1\r\nx", "$1073741825\r\n", "*1048577\r\n"}) {
    EXPECT_EQ(parsed(bytes), "malformed") << bytes;
  }
  EXPECT_EQ(parsed(std::string_view("\0", 1)), "malformed");
}

TEST(RespParser, ALineWithoutEndIsRefusedOnceItIsTooLong) {
  EXPECT_EQ(parsed("+" + std::string(RespParser::kLineBytesMax, 'x')), "more");
  EXPECT_EQ(parsed("+" + std::string(RespParser::kLineBytesMax + 1, 'x')), "malformed");
}

TEST(RespParser, StringsThatAreTooMuchTogetherCostOnlyThemselves) {
  constexpr std::size_t kEach = std::size_t{40} << 20U;
  const std::string each = "$" + std::to_string(kEach) + "\r\n" + std::string(kEach, 'x') + "\r\n";
  std::string stream = "*3\r\n" + each + each + "$2\r\nok\r\n";
  RespParser parser(RespParser::kReplyBytesMax);
  Outcome outcome = parser.parse(stream);
  ASSERT_EQ(outcome, Outcome::kNeedMore);
  stream.erase(parser.skip_at(), parser.skip_left());
  parser.skipped(parser.skip_left());
  outcome = parser.parse(stream);
  ASSERT_EQ(outcome, Outcome::kReply);
  ASSERT_EQ(parser.reply().elements.size(), 3U);
  EXPECT_EQ(parser.reply().elements[0].text.size(), kEach);
  EXPECT_EQ(parser.reply().elements[1].kind, Reply::Kind::kOversized);
  EXPECT_EQ(parser.reply().elements[2].text, "ok");
}

TEST(RespParser, NestingIsBounded) {
  std::string deep;
  for (std::size_t i = 0; i < RespParser::kDepthMax; ++i) deep += "*1\r\n";
  EXPECT_EQ(parsed(deep), "more");
  EXPECT_EQ(parsed(deep + "*1\r\n"), "malformed");
}

TEST(RespParser, ElementsOverAllLevelsAreBounded) {
  std::string many = "*3\r\n";
  for (int i = 0; i < 3; ++i) {
    many += "*500000\r\n";
    for (int j = 0; j < 500'000; ++j) many += "*0\r\n";
  }
  EXPECT_EQ(parsed(many), "malformed");
}

// Builds a random reply of every kind and shape.
std::string random_reply(std::mt19937_64& random, int depth) {
  const auto word = [&] {
    std::string text;
    for (auto n = random() % 20; n > 0; --n) text.push_back(static_cast<char>('a' + random() % 26));
    return text;
  };
  switch (random() % (depth == 0 ? 5 : 7)) {
    case 0:
      return "+" + word() + "\r\n";
    case 1:
      return "-" + word() + "\r\n";
    case 2:
      return ":" + std::to_string(static_cast<std::int64_t>(random())) + "\r\n";
    case 3:
      return "$-1\r\n";
    case 4: {
      std::string bytes;
      for (auto n = random() % 300; n > 0; --n) bytes.push_back(static_cast<char>(random()));
      return "$" + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n";
    }
    default: {
      const auto count = random() % 5;
      std::string array = "*" + std::to_string(count) + "\r\n";
      for (std::uint64_t i = 0; i < count; ++i) array += random_reply(random, depth - 1);
      return array;
    }
  }
}

TEST(RespParser, GivesWhatHiredisGivesHoweverTheBytesArrive) {
  std::mt19937_64 random(test_seed());
  for (int round = 0; round < 300; ++round) {
    std::string stream;
    for (int i = 0; i < 10; ++i) stream += random_reply(random, 5);

    std::string expected;
    const std::unique_ptr<redisReader, decltype(&redisReaderFree)> reader(redisReaderCreate(),
                                                                          &redisReaderFree);
    redisReaderFeed(reader.get(), stream.data(), stream.size());
    void* reply = nullptr;
    while (redisReaderGetReply(reader.get(), &reply) == REDIS_OK && reply != nullptr) {
      expected += shown(*static_cast<redisReply*>(reply)) + "\n";
      freeReplyObject(reply);
    }

    std::string given;
    RespParser parser;
    std::size_t begin = 0;
    std::size_t end = 0;
    while (begin < stream.size()) {
      // A copy of its own each time: views into an earlier place would be caught by ASan.
      const std::string arrived = stream.substr(begin, end - begin);
      const Outcome outcome = parser.parse(arrived);
      ASSERT_NE(outcome, Outcome::kMalformed);
      if (outcome == Outcome::kReply) {
        given += shown(parser.reply()) + "\n";
        begin += parser.length_bytes();
      } else {
        ASSERT_LT(end, stream.size());
        end = std::min(stream.size(), end + 1 + random() % 100);
      }
    }
    ASSERT_EQ(given, expected);
  }
}

}  // namespace resp_parser_test
}  // namespace fcap::redis
