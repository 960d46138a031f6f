#include <array>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <fcap/segment_set.h>

#include "segments/numeric_id.h"

namespace fcap {
namespace {

TEST(CanonicalDecimal, OnlyTheUsualSpellingIsANumber) {
  using segments::canonical_decimal;
  EXPECT_EQ(canonical_decimal("0"), 0U);
  EXPECT_EQ(canonical_decimal("18446744073709551615"), UINT64_MAX);
  for (const char* text : {"", "07", "00", "+7", "-7", " 7", "7 ", "7.0", "0x7", "1e3",
                           "18446744073709551616", "99999999999999999999"}) {
    EXPECT_EQ(canonical_decimal(text), std::nullopt) << text;
  }
}

TEST(SegmentSet, NumbersThatLookAlikeAreDifferentUsers) {
  SegmentSetBuilder builder;
  ASSERT_TRUE(builder.add("vip", "7").ok());
  ASSERT_TRUE(builder.add("loud", "07").ok());
  const auto set = std::move(builder).finish(3);
  EXPECT_EQ(set->version(), 3U);
  EXPECT_TRUE(set->contains("vip", "7"));
  EXPECT_FALSE(set->contains("vip", "07"));
  EXPECT_TRUE(set->contains("loud", "07"));
  EXPECT_FALSE(set->contains("loud", "7"));
}

TEST(SegmentSet, UserIdsBeyond32BitsAreNotFolded) {
  SegmentSetBuilder builder;
  ASSERT_TRUE(builder.add("vip", "4294967303").ok());  // 2^32 + 7
  const auto set = std::move(builder).finish(1);
  EXPECT_TRUE(set->contains("vip", "4294967303"));
  EXPECT_FALSE(set->contains("vip", "7"));
}

TEST(SegmentSet, AnUnknownSegmentHasNoMembers) {
  SegmentSetBuilder builder;
  ASSERT_TRUE(builder.name("empty").ok());
  const auto set = std::move(builder).finish(1);
  EXPECT_TRUE(set->knows("empty"));
  EXPECT_FALSE(set->contains("empty", "u1"));
  EXPECT_FALSE(set->knows("other"));
  EXPECT_FALSE(set->contains("other", "u1"));
}

TEST(SegmentSet, IdsOutsideTheirRangeAreRefused) {
  SegmentSetBuilder builder;
  EXPECT_FALSE(builder.add("", "u1").ok());
  EXPECT_FALSE(builder.add("vip", "").ok());
  EXPECT_FALSE(builder.add("vip", std::string(257, 'u')).ok());
  EXPECT_TRUE(builder.add("vip", std::string(256, 'u')).ok());
}

TEST(SegmentSet, AgreesWithASetOfPairs) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const std::array<std::string, 3> names{"a", "b", "c"};
  const auto any_user = [&] {
    const auto number = random() % 3000;
    switch (random() % 3) {
      case 0:
        return std::to_string(number);
      case 1:
        return "0" + std::to_string(number);
      default:
        return "user-" + std::to_string(number);
    }
  };
  std::set<std::pair<std::string, std::string>> reference;
  SegmentSetBuilder builder;
  for (int i = 0; i < 5000; ++i) {
    const std::string& segment = names[random() % names.size()];
    const std::string user = any_user();
    ASSERT_TRUE(builder.add(segment, user).ok());
    reference.emplace(segment, user);
  }
  const auto set = std::move(builder).finish(1);
  EXPECT_EQ(set->memory().members, reference.size());
  for (int i = 0; i < 5000; ++i) {
    const std::string user = any_user();
    const std::array<std::string_view, 4> asked{"a", "b", "c", "none"};
    std::array<bool, 4> member{};
    set->test(user, asked.data(), member.data(), asked.size());
    for (std::size_t s = 0; s < names.size(); ++s) {
      const bool expected = reference.count({names[s], user}) == 1;
      EXPECT_EQ(member[s], expected) << names[s] << " " << user;
      EXPECT_EQ(set->contains(names[s], user), expected) << names[s] << " " << user;
    }
    EXPECT_FALSE(member[3]);
  }
}

}  // namespace
}  // namespace fcap
