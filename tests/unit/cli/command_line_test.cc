#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fcap/version.h>

#include "command.h"

namespace fcap::cli_test {
namespace command_line_test {

using ::testing::HasSubstr;

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
      {"check", "--input", "-", "", "c1"},
      {"check", "--events", "file"},
      {"check", "--events", "file", "--rules", "file", "u1"},
      {"show", "u1", "--input", "-"},
      {"show", "--input", "-", "--at", "1"},
      {"show", "u1", "--at", ""},
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
      {"--redis-database", "1024", "show", "u1"},
  };
  for (const auto& arguments : wrong) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2) << ::testing::PrintToString(arguments);
    EXPECT_NE(ran.err, "") << ::testing::PrintToString(arguments);
  }
}

TEST(CommandLine, AListWithOneMistakeErasesNobody) {
  const Ran ran = run({"erase", "--input", "-", "--yes", "--brokers", "127.0.0.1:1"}, "u1\n\nu3\n");
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--input: line 2: USER: must not be empty"));
  EXPECT_THAT(ran.err, HasSubstr("nobody was erased"));
  EXPECT_EQ(run({"erase", "--input", "-", "--yes"}, "").code, 2);
  EXPECT_EQ(run({"erase", "u1", "--input", "-", "--yes"}, "u2\n").code, 2);
  EXPECT_EQ(run({"erase", "--input", "-"}, "u2\n").code, 2) << "nobody can be asked";
}

TEST(CommandLine, AListOfUsersMayBeOfTheOtherCommandsLines) {
  const auto erased = [](const std::string& lines) {
    return run({"erase", "--input", "-", "--yes", "--brokers", "127.0.0.1:1", "--timeout", "1ms"},
               lines);
  };
  EXPECT_THAT(erased("u1\n{\"usr\":\"u2\"}\n").err,
              HasSubstr("--input: line 2: \"user\" is missing; nobody was erased"));
  EXPECT_THAT(erased("{\"user\":null}\n").err, HasSubstr("line 1: USER: must not be empty"));
  EXPECT_THAT(erased("{\"user\":\"u1\",\"at\":1700000000000}\n").err, HasSubstr("line 1: \"at\""));
  // Both name a user, so that the broker is next.
  EXPECT_THAT(erased("{\"user\":\"u1\"}\n{3F2504E0-4F89}\n").err, HasSubstr("--brokers"));
}

TEST(CommandLine, TheManualPageGivesFlagsNoValue) {
  const Ran ran = run({"--man-page"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, HasSubstr(".B \\-\\-json\n"));
  EXPECT_THAT(ran.out, HasSubstr(".B \\-h, \\-\\-help\n"));
  EXPECT_THAT(ran.out, HasSubstr(".B \\-\\-key\\-prefix TEXT\n"));
}

TEST(CommandLine, AnOptionOfACommandBeforeItIsToldWhereItBelongs) {
  EXPECT_THAT(run({"--time-zone", "Europe/Berlin", "check", "u1", "c1"}).err,
              HasSubstr("--time-zone: must follow the command"));
}

TEST(CommandLine, UnexpectedArgumentsAreNamedInTheirOrder) {
  const std::string err = run({"check", "u1", "c1", "--nonsense", "5", "--redsi=x"}).err;
  EXPECT_THAT(err, HasSubstr("fcap check: --nonsense: unknown option\n"
                             "fcap check: --redsi: unknown option; did you mean --redis?\n"));
  EXPECT_THAT(run({"show", "u1", "u2", "--x"}).err,
              HasSubstr("fcap show: \"u2\": unexpected argument\n"
                        "fcap show: --x: unknown option\n"));
}

TEST(CommandLine, UnknownCommandIsNamed) {
  EXPECT_THAT(run({"chekc", "u1", "c1"}).err,
              HasSubstr("\"chekc\": unknown command; did you mean check?\n"));
  EXPECT_THAT(run({"bogus"}).err, HasSubstr("\"bogus\": unknown command; there are check, show"));
  EXPECT_THAT(run({}).err, HasSubstr("missing command; expected one of "));
}

TEST(CommandLine, EmptyValueIsNotTheNextArgument) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"show", "u1", "--at="}, {"show", "u1", "--at=", "--json"}, {"show", "u1", "--at"}}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("fcap show: --at: needs a value\n"));
  }
}

TEST(CommandLine, DatabaseNumbersAreTheUpdaters) {
  const Ran gone = run(
      {"show", "u1", "--redis", "127.0.0.1:1", "--timeout", "20ms", "--redis-database", "1023"});
  EXPECT_EQ(gone.code, 1) << gone.err;
}

TEST(CommandLine, RulesThatCannotBeReadNameTheirPlace) {
  const File empty("\n");
  const File list("[[[");
  const File torn("fcap-rules 4 00000000000000000005 0011223344556677\n{}");
  const auto err = [](const std::string& path) { return run({"rules", "--rules", path}).err; };
  EXPECT_THAT(err("/tmp"), HasSubstr("--rules: cannot read /tmp: Is a directory"));
  EXPECT_THAT(err(empty.path()), HasSubstr("--rules: " + empty.path() + " is empty"));
  EXPECT_THAT(err(list.path()),
              HasSubstr("--rules: " + list.path() + ": is neither JSON rules nor a snapshot"));
  EXPECT_THAT(err(torn.path()),
              HasSubstr("--rules: " + torn.path() + ": is incomplete or damaged"));
  EXPECT_EQ(run({"rules", "--rules", list.path()}).code, 1);
  const Ran postgres = run({"rules", "--postgres", "garbage"});
  EXPECT_EQ(postgres.code, 2);
  EXPECT_THAT(postgres.err, HasSubstr("--postgres"));
  EXPECT_EQ(run({"rules", "--retention", "4000d", "--rules", list.path()}).code, 2);
}

TEST(CommandLine, RulesCheckWithoutASourceIsWrongUse) {
  EXPECT_EQ(run({"rules"}).code, 2);
  EXPECT_EQ(run({"rules", "--check"}).code, 2);
  EXPECT_EQ(run({"rules", "--check", "--json"}).code, 2);
  EXPECT_EQ(run({"rules", "--check", "--rules", "/does/not/exist"}).code, 1);
}

TEST(Show, NullUserIsNeverRecordedAndNeedsNoServer) {
  const std::string null_id = "00000000-0000-0000-0000-000000000000";
  for (const std::string& user : {std::string(), null_id}) {
    const Ran ran = run({"show", user, "--redis", "127.0.0.1:1", "--timeout", "20ms"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("null user id, never recorded"));
  }
}

TEST(Show, LinesAreAnsweredInTheirOrder) {
  const Ran ran = run({"show", "--input", "-", "--redis", "127.0.0.1:1", "--timeout", "20ms"},
                      R"({"user":null,"id":3}
{"user":"u1"}
)");
  EXPECT_EQ(ran.code, 1);
  ASSERT_EQ(ran.lines().size(), 2U);
  EXPECT_THAT(ran.lines()[0], HasSubstr(R"({"id":3,"user":"","null_user":true)"));
  EXPECT_THAT(ran.lines()[1], HasSubstr(R"("line":2,"error":"Redis at)"));
}

TEST(CommandLine, MistakesNameTheSetting) {
  EXPECT_THAT(run({"rules"}).err, HasSubstr("--rules"));
  EXPECT_THAT(run({"rules", "--rules", "/does/not/exist"}).err, HasSubstr("--rules"));
  EXPECT_THAT(run({"show", "u1", "--at", "tomorrow"}).err, HasSubstr("--at"));
  EXPECT_THAT(run({"erase", "u1", "--yes", "--at", "2999-01-01T00:00:00Z"}).err,
              HasSubstr("future"));
  EXPECT_THAT(run({"erase", "u1", "--yes", "--at", "2001-01-01T00:00:00Z"}).err,
              HasSubstr("--retention"));
  EXPECT_THAT(run({"erase", "u1"}).err, HasSubstr("--yes"));
  EXPECT_THAT(run({"show", "u1", "--timeout", "soon"}).err, HasSubstr("--timeout"));
  EXPECT_THAT(run({"show", "u1", "--redis-password-file", "/does/not/exist"}).err,
              HasSubstr("--redis-password-file"));
  const File no_password("\n");
  for (const std::string& path : {no_password.path(), std::string("/tmp")}) {
    const Ran refused = run({"show", "u1", "--redis-sentinel-password-file", path});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, AllOf(HasSubstr("--redis-sentinel-password-file"), HasSubstr(path)));
  }
  const Ran gone = run({"show", "u1", "--redis", "127.0.0.1:1", "--timeout", "20ms"});
  EXPECT_EQ(gone.code, 1);
  EXPECT_THAT(gone.err, HasSubstr("--redis"));
}

}  // namespace command_line_test
}  // namespace fcap::cli_test
