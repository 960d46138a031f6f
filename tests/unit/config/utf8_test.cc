#include "config/utf8.h"

#include <string_view>

#include <gtest/gtest.h>

namespace fcap::config {
namespace {

using namespace std::string_view_literals;

TEST(Utf8, AcceptsEveryLengthOfCharacterAtItsEdges) {
  for (const std::string_view text :
       {""sv, "c42"sv, "\0"sv, "\x7f"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv,
        "\xed\x9f\xbf"sv, "\xee\x80\x80"sv, "\xef\xbf\xbf"sv, "\xf0\x90\x80\x80"sv,
        "\xf4\x8f\xbf\xbf"sv, "a\xc3\xa9z"sv}) {
    EXPECT_TRUE(is_utf8(text));
  }
}

TEST(Utf8, RefusesBytesThatAreNone) {
  for (const std::string_view text :
       {"\x80"sv, "\xc3"sv, "\xc3z"sv, "\xc1\xbf"sv, "\xe0\x9f\xbf"sv, "\xed\xa0\x80"sv,
        "\xe2\x82"sv, "\xf0\x8f\xbf\xbf"sv, "\xf4\x90\x80\x80"sv, "\xf5\x80\x80\x80"sv, "\xff"sv,
        "\xf0\x90\x80"sv}) {
    EXPECT_FALSE(is_utf8(text));
  }
}

}  // namespace
}  // namespace fcap::config
