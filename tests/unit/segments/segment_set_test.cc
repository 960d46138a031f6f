#include <array>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <fcap/segment_set.h>

#include "segments/numeric_id.h"

namespace fcap {
namespace segment_set_test {

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
  EXPECT_EQ(set->index_of("empty"), 0U);
  EXPECT_FALSE(set->contains("empty", "u1"));
  EXPECT_EQ(set->index_of("other"), std::nullopt);
  EXPECT_FALSE(set->contains("other", "u1"));
}

TEST(SegmentSet, TheLargestAndTheSmallestNumberAreUsersLikeOthers) {
  for (const char* id : {"0", "18446744073709551615", "18446744073709551614"}) {
    SegmentSetBuilder builder;
    ASSERT_TRUE(builder.add("vip", id).ok());
    ASSERT_TRUE(builder.add("other", "5").ok());
    const auto set = std::move(builder).finish(1);
    for (const char* asked : {"0", "18446744073709551615", "18446744073709551614", "5"}) {
      EXPECT_EQ(set->contains("vip", asked), std::string_view(id) == asked) << asked;
    }
  }
}

TEST(SegmentSet, ANumberNearAndFarFromOthersCountsOnce) {
  SegmentSetBuilder builder;
  // The builder settles after some millions; by then 7 has neighbours, and when it comes again,
  // none.
  for (std::uint64_t i = 0; i < 9'000'000; ++i) {
    const std::uint64_t number = i < 100 ? i : i << 20U;
    ASSERT_TRUE(builder.add("vip", std::to_string(number)).ok());
  }
  ASSERT_TRUE(builder.add("vip", "7").ok());
  const auto set = std::move(builder).finish(1);
  EXPECT_EQ(set->memory().members, 9'000'000U);
  EXPECT_TRUE(set->contains("vip", "7"));
  EXPECT_TRUE(set->contains("vip", std::to_string(8'999'999ULL << 20U)));
  EXPECT_FALSE(set->contains("vip", std::to_string((8'999'999ULL << 20U) + 1)));
  EXPECT_LT(set->memory().bytes(), 9'000'000U * 32);
}

TEST(SegmentSet, EachSegmentTellsItsMembersAndTheSetTheSum) {
  SegmentSetBuilder builder;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(builder.add("even", std::to_string(2 * i)).ok());
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(builder.add("names", "n" + std::to_string(i)).ok());
  ASSERT_TRUE(builder.add("even", "n1").ok());
  ASSERT_TRUE(builder.add("even", "n1").ok());
  const auto set = std::move(builder).finish(1);
  EXPECT_EQ(set->memory(*set->index_of("even")).members, 1001U);
  EXPECT_EQ(set->memory(*set->index_of("names")).members, 10U);
  EXPECT_EQ(set->memory().members, 1011U);
  EXPECT_GT(set->memory().bitmap_bytes, 0U);
  EXPECT_GT(set->memory().dictionary_bytes, 0U);
  EXPECT_EQ(set->memory().bytes(), set->memory().bitmap_bytes + set->memory().dictionary_bytes);
}

TEST(SegmentSet, SetsAreToldApartByTheirSerial) {
  const auto first = SegmentSetBuilder().finish(1);
  const auto second = SegmentSetBuilder().finish(1);
  EXPECT_NE(first->serial(), second->serial());
  EXPECT_TRUE(first->names().empty());
  EXPECT_FALSE(first->contains("vip", "u1"));
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
    switch (random() % 4) {
      case 0:
        return std::to_string(number);
      case 1:
        return "0" + std::to_string(number);
      case 2:  // no two of them near each other
        return std::to_string(number * 0x9E3779B97F4A7C15U);
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
    const SegmentSet::User looked_up = set->look_up(user);
    for (std::uint32_t s = 0; s < names.size(); ++s) {
      const bool expected = reference.count({names[s], user}) == 1;
      EXPECT_EQ(set->contains(s, looked_up), expected) << names[s] << " " << user;
      EXPECT_EQ(set->contains(names[s], user), expected) << names[s] << " " << user;
    }
  }
}

}  // namespace segment_set_test
}  // namespace fcap
