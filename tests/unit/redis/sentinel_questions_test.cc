#include "redis/sentinel_questions.h"

#include <cstdint>
#include <optional>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "redis/resp_parser.h"

namespace fcap::redis {
namespace sentinel_questions_test {

using ::testing::HasSubstr;

Result<Address> answered(std::string_view bytes) {
  RespParser parser;
  EXPECT_EQ(parser.parse(bytes), RespParser::ParseOutcome::kReply);
  return read_master_address(parser.reply(), "fcap");
}

std::optional<std::uint64_t> epoch_of(std::string_view bytes) {
  RespParser parser;
  EXPECT_EQ(parser.parse(bytes), RespParser::ParseOutcome::kReply);
  return read_config_epoch(parser.reply());
}

TEST(MasterAddress, IsReadOfBothFamilies) {
  const auto v4 = answered("*2\r\n$9\r\n127.0.0.1\r\n$4\r\n6379\r\n");
  ASSERT_TRUE(v4.ok());
  EXPECT_EQ(v4.value().host, "127.0.0.1");
  EXPECT_EQ(v4.value().port, 6379);
  const auto v6 = answered("*2\r\n$3\r\n::1\r\n$4\r\n6379\r\n");
  ASSERT_TRUE(v6.ok());
  EXPECT_EQ(v6.value().host, "::1");
}

TEST(MasterAddress, OneThatIsNotKnownDiffersFromOneThatIsNotTold) {
  EXPECT_EQ(answered("*-1\r\n").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(answered("-NOAUTH x\r\n").status().code(), StatusCode::kUnavailable);
}

TEST(MasterAddress, ReasonsAreNeverEmpty) {
  EXPECT_THAT(answered("*-1\r\n").status().text(), HasSubstr("option sentinel_master"));
  EXPECT_THAT(answered("-NOAUTH x\r\n").status().text(), HasSubstr("option sentinel_password"));
  EXPECT_THAT(answered("-ERR unknown command\r\n").status().text(), HasSubstr("option addresses"));
  EXPECT_THAT(answered("-\r\n").status().text(), HasSubstr("an error that says nothing"));
  EXPECT_THAT(answered("*2\r\n$1\r\n/\r\n$0\r\n\r\n").status().text(), HasSubstr("no address"));
}

TEST(ConfigEpoch, ZeroIsToldAndDiffersFromOneThatIsNotTold) {
  EXPECT_EQ(epoch_of("*4\r\n$4\r\nname\r\n$4\r\nfcap\r\n"
                     "$12\r\nconfig-epoch\r\n$1\r\n7\r\n"),
            7U);
  EXPECT_EQ(epoch_of("*2\r\n$12\r\nconfig-epoch\r\n$1\r\n0\r\n"), 0U);
  EXPECT_EQ(epoch_of("*2\r\n$12\r\nconfig-epoch\r\n$2\r\n1x\r\n"), std::nullopt);
  EXPECT_EQ(epoch_of("*2\r\n$4\r\nname\r\n$4\r\nfcap\r\n"), std::nullopt);
  EXPECT_EQ(epoch_of("-NOPERM no permissions to run SENTINEL MASTER\r\n"), std::nullopt);
}

}  // namespace sentinel_questions_test
}  // namespace fcap::redis
