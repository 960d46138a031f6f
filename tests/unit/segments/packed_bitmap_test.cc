// A packed bitmap answers as the roaring bitmap that it was made of.
#include "segments/packed_bitmap.h"

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <roaring/roaring.hh>

#include "tests/support/seed.h"

namespace fcap::segments {
namespace packed_bitmap_test {

// Asks about every number near a member or a boundary, and about some elsewhere.
void expect_same(const Roaring& reference, std::mt19937& random) {
  const PackedBitmap packed(reference);
  ASSERT_EQ(packed.size(), reference.cardinality());
  const auto expect_same_at = [&](std::uint32_t number) {
    ASSERT_EQ(packed.contains(number), reference.contains(number)) << number;
  };
  for (const std::uint32_t member : reference) {
    expect_same_at(member);
    expect_same_at(member - 1);
    expect_same_at(member + 1);
    expect_same_at(member ^ 0x10000U);
  }
  for (const std::uint32_t edge : {0U, 0xFFFFU, 0x10000U, 0xFFFF0000U, 0xFFFFFFFFU}) {
    expect_same_at(edge);
  }
  for (int i = 0; i < 10'000; ++i) expect_same_at(static_cast<std::uint32_t>(random()));
}

class PackedBitmapTest : public ::testing::Test {
 protected:
  std::mt19937 random_{static_cast<std::mt19937::result_type>(test_seed())};
};

TEST_F(PackedBitmapTest, Empty) {
  EXPECT_FALSE(PackedBitmap().contains(0));
  expect_same(Roaring(), random_);
}

TEST_F(PackedBitmapTest, TheFirstAndTheLastNumbersOfAll) {
  expect_same(Roaring::bitmapOf(2, 0U, 0xFFFFFFFFU), random_);
}

TEST_F(PackedBitmapTest, KeysFarApart) {
  Roaring reference;
  for (std::uint32_t key = 5; key < 0xFFFFU;
       key += 1 + static_cast<std::uint32_t>(random_() % 2'000)) {
    reference.add(key << 16U | static_cast<std::uint32_t>(random_() % 65'536));
  }
  expect_same(reference, random_);
}

TEST_F(PackedBitmapTest, ArraysSpreadUnevenlyAreSearchedAsAWhole) {
  Roaring reference;
  for (std::uint32_t i = 0; i < 1'000; ++i) reference.add(2 * i);            // at the lower end
  for (std::uint32_t i = 0; i < 1'000; ++i) reference.add(0x1FFFF - 3 * i);  // at the upper end
  for (std::uint32_t i = 0; i < 2'000; ++i) reference.add(0x20000 + i * i % 65'536);
  expect_same(reference, random_);
}

TEST_F(PackedBitmapTest, AsManyMembersAsAnArrayTakesAndOneMore) {
  for (const std::uint32_t members : {4'095U, 4'096U, 4'097U, 32'768U}) {
    Roaring reference;
    for (std::uint32_t i = 0; i < members; ++i) reference.add(0x30000 + 2 * i);
    expect_same(reference, random_);
  }
}

TEST_F(PackedBitmapTest, RunsOfAnyLength) {
  Roaring reference;
  reference.addRange(0x40000, 0x50000);  // a whole container
  for (std::uint32_t at = 0x50000; at < 0x60000;) {
    const std::uint32_t end = at + 1 + static_cast<std::uint32_t>(random_() % 300);
    reference.addRange(at, end);
    at = end + 1 + static_cast<std::uint32_t>(random_() % 300);
  }
  expect_same(reference, random_);
}

TEST_F(PackedBitmapTest, AnyDensity) {
  for (const std::uint32_t range : {1U << 12U, 1U << 16U, 1U << 18U, 1U << 22U, 1U << 31U}) {
    for (const int members : {1, 10, 1'000, 30'000}) {
      Roaring reference;
      for (int i = 0; i < members; ++i) {
        reference.add(static_cast<std::uint32_t>(random_() % range));
      }
      expect_same(reference, random_);
    }
  }
}

TEST_F(PackedBitmapTest, TakesTheSmallestKindOfContainer) {
  Roaring whole;
  whole.addRange(0, 65'536);
  EXPECT_LT(PackedBitmap(whole).bytes(), 64U);
  Roaring every_other;
  for (std::uint32_t i = 0; i < 65'536; i += 2) every_other.add(i);
  EXPECT_LT(PackedBitmap(every_other).bytes(), 8'300U);
  Roaring few;
  for (std::uint32_t i = 0; i < 100; ++i) few.add(600 * i);
  EXPECT_LT(PackedBitmap(few).bytes(), 300U);
}

}  // namespace packed_bitmap_test
}  // namespace fcap::segments
