// Bitmaps from outside: what CRoaring writes is read, and nothing that is wrong anywhere.
#include "segments/roaring_format.h"

#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <roaring/roaring64map.hh>

#include <fcap/segment_set.h>

namespace fcap::segments {
namespace roaring_format_test {

using ::testing::HasSubstr;

std::string bytes_of(const Roaring64Map& map) {
  std::string bytes(map.getSizeInBytes(), '\0');
  map.write(bytes.data());
  return bytes;
}

std::shared_ptr<const SegmentSet> set_of(std::string_view bytes) {
  SegmentSetBuilder builder;
  const Status status = builder.add_bitmap("vip", bytes);
  EXPECT_TRUE(status.ok()) << status.text();
  return std::move(builder).finish(1);
}

template <typename... Parts>
std::string joined(Parts... parts) {
  std::string bytes;
  const auto put = [&bytes](auto part) {
    bytes.append(reinterpret_cast<const char*>(&part), sizeof part);
  };
  (put(parts), ...);
  return bytes;
}

using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

TEST(Roaring64, ArraysBitsetsAndRunsAreAllRead) {
  Roaring64Map map;
  for (U64 i = 0; i < 100; ++i) map.add(i * 500);                            // an array
  for (U64 i = 0; i < 20'000; ++i) map.add((U64{1} << 20U) + i * 3);         // bitsets
  for (U64 i = 0; i < 50'000; ++i) map.add((U64{5} << 32U) + 7 + i);         // a run
  for (U64 i = 0; i < 9; ++i) map.add(U64{(i * 0x9E3779B97F4A7C15U) | 2U});  // strays
  const auto expected = map.cardinality();
  for (const bool optimised : {false, true}) {
    if (optimised) map.runOptimize();
    const auto set = set_of(bytes_of(map));
    EXPECT_EQ(set->memory().members, expected);
    std::vector<U64> numbers(expected);
    map.toUint64Array(numbers.data());
    for (const U64 number : numbers) ASSERT_TRUE(set->contains("vip", std::to_string(number)));
    EXPECT_FALSE(set->contains("vip", "1"));
    EXPECT_FALSE(set->contains("vip", std::to_string((U64{5} << 32U) + 6)));
  }
}

TEST(Roaring64, AgreesWithASetOfNumbers) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 50; ++round) {
    std::set<U64> numbers;
    Roaring64Map map;
    const auto spread = random() % 60;
    for (int i = 0; i < 2000; ++i) {
      const U64 number = random() >> spread;
      numbers.insert(number);
      map.add(number);
    }
    if (random() % 2 == 0) map.runOptimize();
    const auto set = set_of(bytes_of(map));
    ASSERT_EQ(set->memory().members, numbers.size());
    for (const U64 number : numbers) ASSERT_TRUE(set->contains("vip", std::to_string(number)));
    for (int i = 0; i < 100; ++i) {
      const U64 number = random() >> spread;
      ASSERT_EQ(set->contains("vip", std::to_string(number)), numbers.count(number) == 1);
    }
  }
}

TEST(Roaring64, AnEmptyBitmapIsASegmentWithoutMembers) {
  const auto set = set_of(bytes_of(Roaring64Map()));
  EXPECT_TRUE(set->index_of("vip"));
  EXPECT_EQ(set->memory().members, 0U);
}

TEST(Roaring64, HalfABitmapIsRefusedWhereverItEnds) {
  Roaring64Map map;
  for (U64 i = 0; i < 5000; ++i) map.add(i * 3);
  for (U64 i = 0; i < 50; ++i) map.add((U64{1} << 40U) + i);
  for (U64 i = 0; i < 50; ++i) map.add((U64{1} << 40U) + (i << 18U));
  map.runOptimize();
  const std::string whole = bytes_of(map);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    SegmentSetBuilder builder;
    // A copy of its own, so that a sanitizer sees a read behind its end.
    const std::vector<char> part(whole.begin(),
                                 whole.begin() + static_cast<std::ptrdiff_t>(length));
    ASSERT_EQ(builder.add_bitmap("vip", {part.data(), part.size()}).code(), StatusCode::kCorrupt);
  }
  SegmentSetBuilder builder;
  EXPECT_EQ(builder.add_bitmap("vip", whole + "x").code(), StatusCode::kCorrupt);
}

struct Wrong {
  const char* what;
  std::string bytes;
  const char* said;
};

TEST(Roaring64, WhatCRoaringCouldNotHoldIsRefused) {
  const std::string one = joined(U32{12346}, U32{1}, U16{0}, U16{0}, U32{16}, U16{5});
  std::string bitset = joined(U64{1}, U32{0}, U32{12346}, U32{1}, U16{0}, U16{5000}, U32{16});
  bitset += std::string(8192, '\1');  // 8192 members
  const Wrong all[] = {
      {"a text", "4711\n4712\n4713\n", "ends too early"},
      {"another cookie", joined(U64{1}, U32{0}, U32{12345}), "cookie"},
      {"buckets out of order", joined(U64{2}, U32{1}) + one + joined(U32{0}) + one, "wrong order"},
      {"a bucket twice", joined(U64{2}, U32{1}) + one + joined(U32{1}) + one, "wrong order"},
      {"too many containers", joined(U64{1}, U32{0}, U32{12346}, U32{65537}), "too many"},
      {"containers out of order",
       joined(U64{1}, U32{0}, U32{12346}, U32{2}, U16{3}, U16{0}, U16{3}, U16{0}, U32{24}, U32{26},
              U16{5}, U16{5}),
       "containers in the wrong order"},
      {"an array out of order",
       joined(U64{1}, U32{0}, U32{12346}, U32{1}, U16{0}, U16{1}, U32{16}, U16{5}, U16{5}),
       "array in the wrong order"},
      {"a bitset of another size", bitset, "bitset of another size"},
      {"runs that overlap",
       joined(U64{1}, U32{0}, U32{12347}, std::uint8_t{1}, U16{0}, U16{11}, U16{2}, U16{0}, U16{9},
              U16{9}, U16{1}),
       "run out of its place"},
      {"a run past the end",
       joined(U64{1}, U32{0}, U32{12347}, std::uint8_t{1}, U16{0}, U16{9}, U16{1}, U16{0xFFFF},
              U16{9}),
       "run out of its place"},
      {"runs of another size",
       joined(U64{1}, U32{0}, U32{12347}, std::uint8_t{1}, U16{0}, U16{8}, U16{1}, U16{0}, U16{9}),
       "runs of another size"},
      {"no run at all", joined(U64{1}, U32{0}, U32{12347}, std::uint8_t{1}, U16{0}, U16{0}, U16{0}),
       "runs of another size"},
      {"a count of bitmaps that nobody could hold", joined(~U64{0}, U32{0}) + one, "too early"},
  };
  for (const Wrong& wrong : all) {
    SegmentSetBuilder builder;
    const Status status = builder.add_bitmap("vip", wrong.bytes);
    EXPECT_EQ(status.code(), StatusCode::kCorrupt) << wrong.what;
    EXPECT_THAT(status.text(), HasSubstr(wrong.said)) << wrong.what;
  }
  EXPECT_EQ(set_of(joined(U64{1}, U32{0}) + one)->memory().members, 1U) << "the base is right";
}

}  // namespace roaring_format_test
}  // namespace fcap::segments
