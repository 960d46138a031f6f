#include <set>
#include <string_view>

#include <gtest/gtest.h>

#include <fcap/reason.h>

namespace fcap::checker_test {
namespace reason_test {

TEST(ReasonWords, EachReasonHasAWordAndASentenceOfItsOwn) {
  std::set<std::string_view> words;
  std::set<std::string_view> sentences;
  for (std::size_t i = 0; i < kReasonCount; ++i) {
    words.insert(to_string(static_cast<Reason>(i)));
    sentences.insert(describe(static_cast<Reason>(i)));
  }
  EXPECT_EQ(words.size(), kReasonCount);
  EXPECT_EQ(sentences.size(), kReasonCount);
  EXPECT_FALSE(words.contains(""));
  EXPECT_FALSE(sentences.contains(""));
}

TEST(ReasonWords, AreUnknownBeyondTheLastOne) {
  EXPECT_EQ(to_string(static_cast<Reason>(kReasonCount)), "unknown");
  EXPECT_EQ(describe(static_cast<Reason>(kReasonCount)), "unknown");
}

}  // namespace reason_test
}  // namespace fcap::checker_test
