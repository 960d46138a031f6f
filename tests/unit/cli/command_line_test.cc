#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcap/version.h>

#include "command.h"

namespace fcap::cli_test {
namespace {

using testing::HasSubstr;

TEST(CommandLine, HelpAndVersionSucceed) {
  const Ran help = run({"--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"check", "show", "explain", "rules", "FCAP_REDIS", "Exit codes"}) {
    EXPECT_THAT(help.out, HasSubstr(word));
  }
  EXPECT_EQ(run({"check", "--help"}).code, 0);
  const Ran version = run({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, HasSubstr(FCAP_VERSION));
}

TEST(CommandLine, WrongUseExitsWithTwoAndSaysWhy) {
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"chekc"},
      {"check"},
      {"check", "u1"},
      {"check", "u1", "c1", "--no-such-option"},
      {"check", "--input", "-", "u1", "c1"},
      {"check", "--input", "-", "--at", "1"},
      {"check", "--events", "file"},
      {"show"},
      {"explain", "u1"},
      {"erase"},
      {"erase", "u1"},  // nobody can be asked
      {"erase", "", "--yes"},
      {"erase", "00000000-0000-0000-0000-000000000000", "--yes"},
      {"erase", std::string(257, 'x'), "--yes"},
      {"erase", "\xff", "--yes"},
      {"erase", "u1", "--yes", "--at", "2999-01-01T00:00:00Z"},
      {"erase", "u1", "--yes", "--at", "2001-01-01T00:00:00Z"},
      {"--redis-database", "99", "show", "u1"},
  };
  for (const auto& arguments : wrong) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << testing::PrintToString(arguments);
    EXPECT_NE(ran.err, "") << testing::PrintToString(arguments);
  }
}

TEST(CommandLine, MistakesNameTheSetting) {
  EXPECT_THAT(run({"rules"}).err, HasSubstr("--rules"));
  EXPECT_THAT(run({"rules", "--rules", "/does/not/exist"}).err, HasSubstr("--rules"));
  EXPECT_THAT(run({"show", "u1", "--at", "yesterday"}).err, HasSubstr("--at"));
  EXPECT_THAT(run({"erase", "u1", "--yes", "--at", "2999-01-01T00:00:00Z"}).err,
              HasSubstr("future"));
  EXPECT_THAT(run({"erase", "u1", "--yes", "--at", "2001-01-01T00:00:00Z"}).err,
              HasSubstr("--retention"));
  EXPECT_THAT(run({"erase", "u1"}).err, HasSubstr("--yes"));
  EXPECT_THAT(run({"show", "u1", "--timeout", "soon"}).err, HasSubstr("--timeout"));
  EXPECT_THAT(run({"show", "u1", "--redis-password-file", "/does/not/exist"}).err,
              HasSubstr("--redis-password-file"));
  const Ran gone = run({"show", "u1", "--redis", "127.0.0.1:1", "--timeout", "20ms"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, HasSubstr("--redis"));
}

}  // namespace
}  // namespace fcap::cli_test
