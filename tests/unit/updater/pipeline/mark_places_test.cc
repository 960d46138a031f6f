// Where the copies of a shard's mark are, and which mark they make together.
#include "updater/pipeline/mark_places.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace fcap::updater {
namespace mark_places_test {

using Places = std::vector<int>;

MarkValue mark_by(std::string node, std::string replication, std::uint64_t serial,
                  Places places = {5, 2}) {
  MarkValue mark{.position = 7};
  mark.shard = {.node = std::move(node),
                .replication = std::move(replication),
                .arrivals_safe = true,
                .serial = serial,
                .places = std::move(places),
                .slots = {0, 5}};
  return mark;
}

// A shard's data set with these marks.
std::optional<std::uint64_t> serial_of(const ShardLook& look, const std::vector<MarkValue>& found) {
  const auto mark = mark_of_shard(look, found);
  return mark ? std::optional(mark->shard->serial) : std::nullopt;
}

TEST(MarkOfShard, IsTheNewestThatWasWrittenToIt) {
  const ShardLook promoted{.node = "a2", .replication = "r2", .former = "r1", .owned = {0, 5}};
  const std::vector<MarkValue> found{mark_by("a1", "r1", 4, {4}), mark_by("a1", "r1", 5),
                                     mark_by("a1", "r1", 5, {2, 5}), mark_by("b1", "q1", 9, {1}),
                                     MarkValue{.position = 3}};
  EXPECT_EQ(serial_of(promoted, found), 5U);
  EXPECT_EQ(serial_of({.node = "a1", .replication = "r9", .owned = {0, 5}}, found), 5U);
  EXPECT_FALSE(serial_of({.node = "c1", .replication = "s1", .owned = {0, 5}}, found))
      << "they came with slots that moved here";
}

TEST(MarkOfShard, IsTheOlderCopyWhereOnlyOneWasWritten) {
  const ShardLook look{.node = "a", .replication = "r", .owned = {0, 5}};
  EXPECT_EQ(serial_of(look, {mark_by("a", "r", 5, {5, 2}), mark_by("a", "r", 4, {2, 5})}), 4U);
  EXPECT_EQ(serial_of(look, {mark_by("a", "r", 5, {5, 2}), mark_by("a", "r", 4, {2, 1})}),
            std::nullopt)
      << "neither of the two agrees with a copy beside it";
}

TEST(MarkOfShard, IsNoneWhereTheOtherCopyIsGoneThoughItsSlotIsThere) {
  const std::vector<MarkValue> found{mark_by("a", "r", 5, {5, 2})};
  EXPECT_FALSE(serial_of({.node = "a", .replication = "r", .owned = {0, 5}}, found));
  EXPECT_EQ(serial_of({.node = "a", .replication = "r", .owned = {3, 5}}, found), 5U);
  EXPECT_EQ(
      serial_of({.node = "a", .replication = "r", .owned = {0, 5}, .migrating = {2, 2}}, found),
      5U);
}

TEST(MarkOfShard, NeedsTheCopyInASlotThatWasLeavingBecauseItShowsThatNothingWasLost) {
  MarkValue mark = mark_by("a", "r", 5, {5, 2});
  mark.shard->slots = SlotSet(3, 5);
  mark.shard->partly = SlotSet(2, 2);
  const ShardLook look{.node = "a", .replication = "r", .owned = {2, 5}, .migrating = {2, 2}};
  EXPECT_FALSE(serial_of(look, {mark}));
  EXPECT_EQ(serial_of(look, copies_of(mark)), 5U);
}

TEST(PlacesForMark, AreTwoSlotsFarApart) {
  EXPECT_EQ(places_for_mark({.owned = {0, 5460}}, {}), (Places{2730, 5460}));
  EXPECT_EQ(places_for_mark({.owned = {7, 8}}, {}), (Places{7, 8}));
  EXPECT_EQ(places_for_mark({.owned = {7, 7}}, {}), (Places{7}));
  EXPECT_EQ(places_for_mark({}, {}), Places());
}

TEST(PlacesForMark, AreOnlyWhereMarksMayBe) {
  const SlotSet allowed = SlotSet(3, 3) | SlotSet(7, 7) | SlotSet(11, 11);
  EXPECT_EQ(places_for_mark({.owned = {0, 9}}, {}, allowed), (Places{3, 7}));
  EXPECT_EQ(places_for_mark({.owned = {0, 9}, .migrating = {3, 3}}, {3, 7}, allowed), (Places{7}));
  EXPECT_EQ(places_for_mark({.owned = {4, 11}}, {3, 7}, allowed), (Places{11, 7}));
  EXPECT_EQ(places_for_mark({.owned = {4, 6}}, {}, allowed), Places());
}

TEST(PlacesForMark, StayWhereTheyAre) {
  EXPECT_EQ(places_for_mark({.owned = {0, 9}}, {1, 3}), (Places{1, 3}));
}

TEST(PlacesForMark, OnlyOneChangesAndIsWrittenFirst) {
  EXPECT_EQ(places_for_mark({.owned = {0, 9}, .migrating = {1, 1}}, {1, 3}), (Places{9, 3}));
  EXPECT_EQ(places_for_mark({.owned = {2, 9}}, {1, 3}), (Places{9, 3}));
  const Places both = places_for_mark({.owned = {0, 9}, .migrating = {1, 3}}, {1, 3});
  EXPECT_EQ(both, (Places{9, 1})) << "the one that leaves shows that nothing was lost";
}

TEST(PlacesForMark, AreNoneWhereBothCopiesHaveLeft) {
  EXPECT_EQ(places_for_mark({.owned = {4, 9}}, {1, 3}), Places());
}

TEST(PlacesForMark, StayWhereEverySlotIsLeaving) {
  EXPECT_EQ(places_for_mark({.owned = {1, 3}, .migrating = {1, 3}}, {1, 3}), (Places{1, 3}));
  EXPECT_EQ(places_for_mark({.owned = {1, 3}, .migrating = {1, 3}}, {}), Places());
}

TEST(CopiesOfMark, NameTheirOwnSlotFirst) {
  const std::vector<MarkValue> copies = copies_of(mark_by("a", "r", 5, {9, 3}));
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_EQ(copies[0].shard->places, (Places{9, 3}));
  EXPECT_EQ(copies[1].shard->places, (Places{3, 9}));
}

}  // namespace mark_places_test
}  // namespace fcap::updater
