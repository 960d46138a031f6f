#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
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
/// User ids that are canonical decimals ("7", not "07") below 2^64 lie in 64-bit roaring bitmaps,
/// or, where they are too far apart for bitmaps, in a table; all other ids in a dictionary, which
/// stores each id once, whole. Membership is never decided by a hash alone.
///
/// Thread safety: immutable; share it freely. Nothing blocks, and asking does not allocate.
class FCAP_EXPORT SegmentSet {
 public:
  struct Memory {
    std::uint64_t members = 0;           ///< memberships: a user in two segments counts twice
    std::uint64_t bitmap_bytes = 0;      ///< of the segments' own bitmaps
    std::uint64_t dictionary_bytes = 0;  ///< of ids that all segments share

    [[nodiscard]] std::uint64_t bytes() const noexcept { return bitmap_bytes + dictionary_bytes; }
  };

  /// A user, looked up once for any number of segments of one set.
  class User {
   private:
    friend class SegmentSet;
    std::uint64_t number_ = 0;
    std::uint32_t entry_ = 0;  // in the dictionary or table
    bool is_number_ = false;
    bool has_entry_ = false;
  };

  ~SegmentSet();
  SegmentSet(const SegmentSet&) = delete;
  SegmentSet& operator=(const SegmentSet&) = delete;

  /// The source's; a higher one is newer.
  [[nodiscard]] std::uint64_t version() const noexcept;
  /// Differs between any two sets of this process.
  [[nodiscard]] std::uint64_t serial() const noexcept;
  /// Sorted; segments that have been named, with or without members.
  [[nodiscard]] const std::vector<std::string>& names() const noexcept;
  /// A segment's index into names(); none: it is not known.
  [[nodiscard]] std::optional<std::uint32_t> index_of(std::string_view segment) const noexcept;

  /// Any id may be asked about.
  [[nodiscard]] User look_up(std::string_view user_id) const noexcept;
  /// `segment` is an index into names(), `user` this set's.
  [[nodiscard]] bool contains(std::uint32_t segment, const User& user) const noexcept;
  /// Both at once. False for a segment that is not known.
  [[nodiscard]] bool contains(std::string_view segment, std::string_view user_id) const noexcept;

  /// What the process holds for the whole set, or for one segment (whose dictionary_bytes are 0):
  /// estimates, the allocator's part included.
  [[nodiscard]] const Memory& memory() const noexcept;
  [[nodiscard]] const Memory& memory(std::uint32_t segment) const noexcept;

 private:
  friend class SegmentSetBuilder;
  struct SegmentSetParts;
  explicit SegmentSet(std::unique_ptr<SegmentSetParts> parts);
  std::unique_ptr<SegmentSetParts> parts_;
};

/// Collects memberships and makes a SegmentSet of them. Throws std::bad_alloc.
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
  /// Adds the users whose ids are the canonical decimals of a roaring bitmap's numbers, given in
  /// the portable 64-bit serialisation. Any bytes are safe. kCorrupt: they are no such bitmap; some
  /// of it may have been added.
  Status add_bitmap(std::string_view segment, std::string_view portable_roaring64);

  /// Makes the set and uses the builder up. Takes about a second for ten million members.
  [[nodiscard]] std::shared_ptr<const SegmentSet> finish(std::uint64_t version) &&;

 private:
  std::unique_ptr<SegmentSet::SegmentSetParts> parts_;
};

}  // namespace fcap
