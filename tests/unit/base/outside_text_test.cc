#include "base/outside_text.h"

#include <vector>

#include <gtest/gtest.h>

namespace fcap::base {
namespace outside_text_test {

TEST(Printable, LeavesNoControlCharacter) {
  EXPECT_EQ(printable("u\x1b[2J1\n"), "u\\x1b[2J1\\x0a");
  EXPECT_EQ(printable("caf\xC3\xA9 \xC2\x9B \xC2\xA9 \xC2"),
            "caf\xC3\xA9 \\xc2\\x9b \xC2\xA9 \xC2");
  EXPECT_EQ(printable(std::string_view("\0\t\x7f", 3)), "\\x00\\x09\\x7f");
  EXPECT_EQ(printable_lines("a\x1b\nb\n"), "a\\x1b\nb\n");
}

TEST(OneLine, JoinsLines) {
  EXPECT_EQ(one_line("as it is"), "as it is");
  EXPECT_EQ(one_line("the rules are not valid:\n  one\n  two\n"),
            "the rules are not valid: one; two");
  EXPECT_EQ(one_line("FATAL: no\r\n\tDETAIL: none.\n\nHINT:\tx"),
            "FATAL: no; DETAIL: none. HINT: x");
  EXPECT_EQ(one_line("\n \n"), "");
  EXPECT_EQ(one_line("a\rb\x1b[2J"), "a\\x0db\\x1b[2J");
  const std::string once = one_line("a:\n\x1b b\tc\nd");
  EXPECT_EQ(one_line(once), once);
}

TEST(OneLineLog, HandsOnCleanTextsOnly) {
  EXPECT_FALSE(one_line_log({}));
  std::vector<std::string> lines;
  const LogCallback log =
      one_line_log([&](LogLevel, std::string_view text) { lines.emplace_back(text); });
  log(LogLevel::kInfo, "as it is");
  log(LogLevel::kInfo, "two\nlines");
  EXPECT_EQ(lines, (std::vector<std::string>{"as it is", "two; lines"}));
}

}  // namespace outside_text_test
}  // namespace fcap::base
