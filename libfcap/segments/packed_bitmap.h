#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <roaring/roaring.hh>

#include "segments/huge_pages.h"

namespace fcap::segments {

/// What a roaring bitmap holds, in a read-only layout optimised for lookups: its three kinds of
/// container (Lemire et al., "Roaring Bitmaps: Implementation of an Optimized Software Library",
/// 2018), all in one piece of memory, found without a search where keys lie close together.
///
/// CRoaring gives each container two blocks of its own, and searches the keys and then the array,
/// each time by halves, so that an answer waits for several lines of memory and for branches that
/// nobody can predict. bench/micro/segments_bench.cc compares the two.
class PackedBitmap {
 public:
  PackedBitmap() = default;
  explicit PackedBitmap(const Roaring& bitmap);

  [[nodiscard]] bool contains(std::uint32_t number) const noexcept;
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  enum class Kind : std::uint16_t { kArray, kBitset, kRuns };

  /// The numbers that share their upper half. Small, so that all 65,536 fit into a core's cache.
  struct Container {
    std::uint32_t place;  // in words_
    std::uint16_t key;    // the upper half
    Kind kind : 2;
    std::uint16_t count : 14;  // of members in an array, of runs
  };
  using Words = std::vector<std::uint16_t, HugePageAllocator<std::uint16_t>>;

  void append(std::uint16_t key, const std::vector<std::uint16_t>& members);

  std::vector<Container> containers_;  // by key
  // An array's members; a bitset's bits, lowest first; the first numbers of all runs, then the last
  // ones.
  Words words_;
  std::uint64_t size_ = 0;
};

}  // namespace fcap::segments
