// Files of user ids, in pieces.
#include "sources/id_lines.h"

#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fcap::sources {
namespace id_lines_test {

using ::testing::HasSubstr;

Status read_in_pieces(std::string_view text, std::size_t size, SegmentSetBuilder& builder) {
  IdLines lines("vip", builder);
  for (; !text.empty(); text.remove_prefix(std::min(size, text.size()))) {
    if (Status status = lines.read(text.substr(0, size)); !status.ok()) return status;
  }
  return lines.finish();
}

TEST(IdLines, PiecesOfAnySizeGiveTheSameMembers) {
  const std::string longest(256, 'x');
  const std::string text = "\xEF\xBB\xBF" + longest + "\r\n\n7\r\n07\nu\r1\n\xEF\xBB\xBFu2\nlast\r";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    SegmentSetBuilder builder;
    const Status status = read_in_pieces(text, size, builder);
    ASSERT_TRUE(status.ok()) << size << ": " << status.text();
    const auto set = std::move(builder).finish(1);
    EXPECT_EQ(set->memory().members, 6U) << size;
    for (const std::string& id : {longest, std::string("7"), std::string("07"), std::string("u\r1"),
                                  std::string("\xEF\xBB\xBFu2"), std::string("last")}) {
      EXPECT_TRUE(set->contains("vip", id)) << size << ": " << id;
    }
  }
}

TEST(IdLines, ATooLongLineIsNamedWhereverThePiecesEnd) {
  const std::string text = "u1\n\n" + std::string(257, 'x') + "\nu2\n";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    SegmentSetBuilder builder;
    const Status status = read_in_pieces(text, size, builder);
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << size;
    EXPECT_THAT(status.text(), HasSubstr("line 3: user id: must have 1 to 256 bytes")) << size;
  }
}

TEST(IdLines, AFileWithoutAnEndOfLineIsNotHeldInMemory) {
  SegmentSetBuilder builder;
  IdLines lines("vip", builder);
  const std::string piece(130, 'x');
  EXPECT_TRUE(lines.read(piece).ok());
  EXPECT_TRUE(lines.read(piece).ok());
  EXPECT_EQ(lines.read(piece).code(), StatusCode::kCorrupt);
}

}  // namespace id_lines_test
}  // namespace fcap::sources
