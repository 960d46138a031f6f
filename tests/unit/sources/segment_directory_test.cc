// Segments from the files of a directory.
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <roaring/roaring64map.hh>
#include <sys/eventfd.h>

#include "base/file_handle.h"
#include "sources/segment_refresher.h"
#include "sources/segment_source.h"
#include "sources/segment_warnings.h"
#include "support/temporary_directory.h"

namespace fcap::sources {
namespace segment_directory_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SegmentFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(directory_.file(name), std::ios::binary) << bytes;
  }
  void remove(const std::string& name) const { std::filesystem::remove(directory_.file(name)); }
  Result<std::optional<LoadedSegments>> look() {
    return source_.look({std::chrono::steady_clock::now() + std::chrono::seconds{60}});
  }
  std::shared_ptr<const SegmentSet> loaded() {
    auto looked = look();
    EXPECT_TRUE(looked.ok()) << looked.status().text();
    if (!looked.ok() || !looked.value()) return nullptr;
    return looked.value()->set;
  }
  std::string refused() {
    const auto looked = look();
    EXPECT_FALSE(looked.ok());
    return looked.status().text();
  }
  static std::string roaring(std::initializer_list<std::uint64_t> numbers) {
    Roaring64Map map;
    for (const std::uint64_t number : numbers) map.add(number);
    std::string bytes(map.getSizeInBytes(), '\0');
    map.write(bytes.data());
    return bytes;
  }

  TemporaryDirectory directory_;
  SegmentDirectory source_{directory_.path()};
};

TEST_F(SegmentFiles, BothKindsOfFilesMakeASegmentAndOneNameOne) {
  write("vip.ids", "u1\r\n\n07\n7\nlast without newline");
  write("vip.roaring64", roaring({8, 1ULL << 40U}));
  write("empty.ids", "");
  write("päckchen 9.ids", "\xEF\xBB\xBFu9\n");
  const auto set = loaded();
  ASSERT_TRUE(set);
  EXPECT_THAT(set->names(), ElementsAre("empty", "päckchen 9", "vip"));
  for (const char* member : {"u1", "07", "7", "last without newline", "8", "1099511627776"}) {
    EXPECT_TRUE(set->contains("vip", member)) << member;
  }
  EXPECT_TRUE(set->contains("päckchen 9", "u9"));
  EXPECT_EQ(set->memory().members, 7U);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto age_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now).count() -
                      static_cast<std::int64_t>(set->version());
  EXPECT_GE(age_ms, -1000);
  EXPECT_LT(age_ms, 600'000);
}

TEST_F(SegmentFiles, AnEmptyDirectoryIsASetWithoutSegments) {
  const auto set = loaded();
  ASSERT_TRUE(set);
  EXPECT_THAT(set->names(), IsEmpty());
}

TEST_F(SegmentFiles, LinesOfMoreThanOneBlockAreReadWhole) {
  std::string lines;
  for (int i = 0; i < 200'000; ++i) lines += "user-" + std::to_string(i) + "\n";
  write("many.ids", lines);
  const auto set = loaded();
  EXPECT_EQ(set->memory().members, 200'000U);
  for (int i = 0; i < 200'000; i += 7) {
    ASSERT_TRUE(set->contains("many", "user-" + std::to_string(i))) << i;
  }
}

TEST_F(SegmentFiles, UnchangedFilesAreNotReadAgain) {
  write("vip.ids", "u1\n");
  EXPECT_TRUE(loaded());
  EXPECT_FALSE(loaded());
  write("vip.ids", "u1\nu2\n");
  EXPECT_TRUE(loaded()) << "another size";
  write("press.ids", "u1\n");
  EXPECT_TRUE(loaded()) << "one more";
  remove("press.ids");
  EXPECT_TRUE(loaded()) << "one fewer";
  std::filesystem::last_write_time(
      directory_.file("vip.ids"),
      std::filesystem::file_time_type::clock::now() - std::chrono::hours{1});
  EXPECT_TRUE(loaded()) << "another time";
  EXPECT_FALSE(loaded());
}

TEST_F(SegmentFiles, WhatIsNoSegmentIsIgnoredAloud) {
  write("vip.ids.gz", "zipped");
  write(".ids", "u1\n");
  write(".vip.ids.part", "u1\n");
  std::filesystem::create_directory(directory_.file("sub.ids"));
  write("vip.ids", "u1\n");
  const auto looked = look();
  ASSERT_TRUE(looked.ok() && looked.value());
  EXPECT_THAT(looked.value()->set->names(), ElementsAre("vip"));
  EXPECT_THAT(looked.value()->remarks,
              ElementsAre(HasSubstr("sub.ids is ignored"), HasSubstr("vip.ids.gz is ignored")));
}

TEST_F(SegmentFiles, OneBadFileRefusesAllAndIsNamed) {
  write("good.ids", "u1\n");
  write("bad.ids", "u1\nu2\n" + std::string(257, 'x') + "\n");
  EXPECT_THAT(refused(), HasSubstr("bad.ids: line 3: user id: must have 1 to 256 bytes"));
  write("bad.ids", "u1\n" + std::string(3'000'000, 'x'));
  EXPECT_THAT(refused(), HasSubstr("bad.ids: line 2"));
  remove("bad.ids");
  write("bits.roaring64", roaring({1, 2, 3}).substr(0, 20));
  EXPECT_THAT(refused(), HasSubstr("bits.roaring64: is not a portable 64-bit roaring bitmap"));
  EXPECT_THAT(refused(), HasSubstr("bits.roaring64")) << "a refused state is not taken for known";
  write("bits.roaring64", roaring({1, 2, 3}));
  EXPECT_TRUE(loaded());
}

TEST_F(SegmentFiles, AMissingDirectoryIsNotFound) {
  SegmentDirectory missing(directory_.file("none"));
  const auto looked = missing.look({std::chrono::steady_clock::now() + std::chrono::seconds{1}});
  EXPECT_EQ(looked.status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(looked.status().retryable());
}

TEST_F(SegmentFiles, StoppingEndsTheReading) {
  write("vip.ids", "u1\n");
  const base::FileHandle stop(::eventfd(1, EFD_CLOEXEC));
  const auto looked =
      source_.look({std::chrono::steady_clock::now() + std::chrono::seconds{60}, stop.fd()});
  EXPECT_EQ(looked.status().code(), StatusCode::kUnavailable);
}

TEST(SegmentWarnings, NameEachSegmentOnceWithItsFirstRule) {
  RuleSetSpec spec;
  for (const char* id : {"b", "a", "c"}) {
    Rule rule;
    rule.id = id;
    rule.target = std::string("campaign-") + id;
    rule.limit = 1;
    rule.window.length = std::chrono::hours{1};
    rule.segment = std::string_view(id) == "c" ? "known" : "unknown";
    spec.rules.push_back(rule);
  }
  const auto rules = RuleSet::build(spec, {});
  ASSERT_TRUE(rules.ok());
  SegmentSetBuilder builder;
  ASSERT_TRUE(builder.name("known").ok());
  const auto set = std::move(builder).finish(1);
  EXPECT_THAT(
      segment_warnings(*rules.value(), *set),
      ElementsAre("segment \"unknown\", which rule \"a\" (and 1 more) names, is not among the "
                  "stored ones: it has no members but those that callers name"));
}

}  // namespace segment_directory_test
}  // namespace fcap::sources
