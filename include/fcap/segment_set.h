#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/export.h>
#include <fcap/status.h>

namespace fcap {

/// Who is in which segment: an immutable snapshot, swapped whole, under a version of its own.
///
///     fcap::SegmentSetBuilder builder;
///     if (auto status = builder.add("vip", "4711"); !status.ok()) return status;
///     checker.set_segments(std::move(builder).finish(/*version=*/17));
///
/// User ids that are canonical decimals ("7", not "07") below 2^64 lie in one 64-bit roaring bitmap
/// a segment; all others in an exact dictionary, which stores each id once, whole. Membership is
/// never decided by a hash alone.
///
/// Thread safety: immutable; share it freely.
class FCAP_EXPORT SegmentSet {
 public:
  struct Memory {
    std::uint64_t members = 0;           ///< memberships, over all segments
    std::uint64_t bitmap_bytes = 0;      ///< of the roaring bitmaps
    std::uint64_t dictionary_bytes = 0;  ///< of ids that are no canonical decimals
  };

  ~SegmentSet();
  SegmentSet(const SegmentSet&) = delete;
  SegmentSet& operator=(const SegmentSet&) = delete;

  [[nodiscard]] std::uint64_t version() const noexcept;
  /// Sorted; ids of segments that have been named, with or without members.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept;
  [[nodiscard]] bool knows(std::string_view segment) const noexcept;
  /// False for a segment that is not known.
  [[nodiscard]] bool contains(std::string_view segment, std::string_view user_id) const noexcept;
  /// The same for several segments of one user: looks the id up once. Sets `member[i]` for
  /// `segments[i]`; both have `count` elements.
  void test(std::string_view user_id, const std::string_view* segments, bool* member,
            std::size_t count) const noexcept;
  [[nodiscard]] Memory memory() const noexcept;

 private:
  friend class SegmentSetBuilder;
  struct Parts;
  explicit SegmentSet(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// Collects memberships and makes a SegmentSet of them.
///
/// Not thread-safe.
class FCAP_EXPORT SegmentSetBuilder {
 public:
  SegmentSetBuilder();
  ~SegmentSetBuilder();
  SegmentSetBuilder(const SegmentSetBuilder&) = delete;
  SegmentSetBuilder& operator=(const SegmentSetBuilder&) = delete;

  /// Names a segment that may stay without members. kInvalidArgument: not 1 to 256 bytes.
  Status name(std::string_view segment);
  /// Adds a user; a repeated one changes nothing. kInvalidArgument: an id that is not 1 to 256
  /// bytes.
  Status add(std::string_view segment, std::string_view user_id);

  [[nodiscard]] std::shared_ptr<const SegmentSet> finish(std::uint64_t version) &&;

 private:
  std::unique_ptr<SegmentSet::Parts> parts_;
};

}  // namespace fcap
