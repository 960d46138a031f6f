#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <vector>

#include <roaring/roaring.hh>

#include <fcap/status.h>

#include "segments/packed_bitmap.h"

namespace fcap::segments {

/// A set of 64-bit numbers: first collected, then asked. Numbers that lie close together become one
/// 32-bit roaring bitmap for each upper half; a number with next to no neighbours would cost a
/// container of its own there, so finish() hands those back as strays.
///
/// Extra memory while collecting: some 32 MB, and 16 bytes per stray.
class NumberSet {
 public:
  void add(std::uint64_t number);
  /// Adds a portable 64-bit roaring bitmap. kCorrupt: it is not one; part of it may have been
  /// added.
  Status add_bitmap(std::string_view bytes);

  /// Ends collecting. Gives the strays, sorted.
  [[nodiscard]] std::vector<std::uint64_t> finish();

  // --- After finish(). The strays are not among the members.

  [[nodiscard]] bool contains(std::uint64_t number) const noexcept;
  [[nodiscard]] std::uint64_t size() const noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  static constexpr std::size_t kPendingMin = std::size_t{1} << 22U;

  void settle();

  std::vector<std::uint64_t> pending_;
  std::size_t settle_at_ = kPendingMin;
  std::map<std::uint32_t, Roaring> collected_;
  // The same, by upper half, in two arrays that lie beside each other.
  std::vector<std::uint32_t> highs_;
  std::vector<PackedBitmap> bitmaps_;
};

}  // namespace fcap::segments
