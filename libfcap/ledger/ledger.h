#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/rule.h>
#include <fcap/time.h>

#include "ledger/column.h"

namespace fcap::ledger {

/// One event as a record holds it. Its identity is (campaign, type, fingerprint).
struct Entry {
  /// Records hold 48 bits of milliseconds, 1970 to the year 10889. What a Ledger or an encoder is
  /// given beyond that becomes the nearest instant within it.
  Instant time;
  std::uint64_t campaign = 0;  ///< id_hash() of the campaign's id
  std::uint64_t creative = 0;  ///< id_hash() of the creative's id; 0: none
  EventType type = EventType::kImpression;
  std::uint32_t fingerprint = 0;

  friend bool operator==(const Entry&, const Entry&) = default;
};

/// An event that is delivered again has the same time. Events of one identity whose times are
/// further apart than this are taken for different events whose producer repeats ids.
inline constexpr std::chrono::minutes kCopiesApartMax{5};

/// Whether these times of one identity are so far apart.
[[nodiscard]] constexpr bool is_repeated_id(Instant a, Instant b) noexcept {
  return (a < b ? b - a : a - b) > kCopiesApartMax;
}

/// An impression that somebody has reserved and that is expected. Its identity is that of the entry
/// that confirms it.
struct Reservation {
  Entry event;      ///< its time is when it was reserved
  Instant expires;  ///< at most 49.7 days after its time
  bool released = false;

  friend bool operator==(const Reservation&, const Reservation&) = default;
};

/// The entries of one campaign and type: [begin, end) in the Ledger's columns. Never empty.
struct Run {
  std::uint64_t campaign = 0;
  EventType type = EventType::kImpression;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// How far decoding got.
enum class DecodeCode : std::uint8_t {
  kOk,
  kTruncated,  ///< a frame is longer than what is left
  kMalformed,  ///< a frame's payload does not hold what its tag says
};

/// A user's history, decoded: the union of all entries of a record, each identity once, by column.
///
/// Merging is a set union and so order-free and repeatable: whatever the order, number and grouping
/// of merges, the same entries and markers give the same Ledger. The buffers are kept between
/// decodes, so a Ledger that is used again does not allocate once it has seen its largest record;
/// it never needs more than a small multiple of a record's own length.
///
/// What allocates throws std::bad_alloc. Then only decode() and clear() may be called next, since
/// the contents may be half changed.
///
/// Not thread-safe; one Ledger per thread.
class Ledger {
 public:
  /// Replaces the contents by those of `record` (which may be empty: no history). Entries at or
  /// before an erased-before marker are left out. Any bytes are safe. When the code is not kOk the
  /// ledger is empty. Throws std::bad_alloc, and then the ledger is empty too.
  DecodeCode decode(std::string_view record);

  void clear() noexcept;

  /// Adds one entry by the merge rule: of one identity the later time wins; of equal times a
  /// present creative beats an absent one, then the larger hash. An erased entry is not added.
  void merge(const Entry& entry);

  /// Does the same for a reservation, by its own merge rule: see reservations().
  void merge(const Reservation& reservation);

  /// Adds everything of another ledger, markers and all else included; unknown_frames() stays what
  /// it was.
  void merge(const Ledger& other);

  /// Erases everything up to and including `until`, permanently: what a decoded erased-before
  /// marker does.
  void erase_before(Instant until);

  /// Leaves out entries and reservations later than `latest`, to answer as of that instant. Unlike
  /// an erasure this leaves no marker.
  void drop_after(Instant latest);

  /// Leaves only the entries whose index is marked. `keep` is as long as the columns; if not, it is
  /// about another ledger, and all entries stay.
  void retain(const std::vector<bool>& keep);

  /// Sorted by (campaign, type), each pair once.
  [[nodiscard]] std::span<const Run> runs() const noexcept { return runs_; }
  /// The columns: within a run ascending by (time, fingerprint).
  [[nodiscard]] std::span<const Instant> times() const noexcept { return times_; }
  [[nodiscard]] std::span<const std::uint64_t> creatives() const noexcept { return creatives_; }
  [[nodiscard]] std::span<const std::uint32_t> fingerprints() const noexcept {
    return fingerprints_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return times_.size(); }
  [[nodiscard]] bool empty() const noexcept { return times_.empty(); }
  /// The entry at `index` of the columns, which lies in [run.begin, run.end).
  [[nodiscard]] Entry entry(const Run& run, std::uint32_t index) const noexcept;

  /// The run of a campaign and type, or null. Valid until the next change.
  [[nodiscard]] const Run* find_run(std::uint64_t campaign, EventType type) const noexcept;
  /// The index of the entry of this identity in the columns; none: there is no such entry.
  [[nodiscard]] std::optional<std::uint32_t> find(std::uint64_t campaign, EventType type,
                                                  std::uint32_t fingerprint) const noexcept;
  [[nodiscard]] bool contains(std::uint64_t campaign, EventType type,
                              std::uint32_t fingerprint) const noexcept {
    return find(campaign, type, fingerprint).has_value();
  }

  /// Entries at or before this instant are erased permanently.
  [[nodiscard]] std::optional<Instant> erased_before() const noexcept { return erased_before_; }
  /// Entries before this instant may be missing: the record was trimmed for size. A window is
  /// complete when the first millisecond that it counts is not before this. None when nothing that
  /// is missing could count, because all of it is erased anyway.
  [[nodiscard]] std::optional<Instant> complete_since() const noexcept { return complete_since_; }
  /// What is reserved, each identity once, by identity. Copies are united: released if either is,
  /// the later expiry, time and creative as of entries. They stay when their entry arrives or they
  /// expire: whoever counts them looks at that.
  [[nodiscard]] std::span<const Reservation> reservations() const noexcept { return reservations_; }
  /// The reservation of this identity, or null. Valid until the next change.
  [[nodiscard]] const Reservation* find_reservation(std::uint64_t campaign, EventType type,
                                                    std::uint32_t fingerprint) const noexcept;
  /// The newest entry's time; none when empty.
  [[nodiscard]] std::optional<Instant> newest() const noexcept;
  /// Entries that were left out for a later one of their identity, although their times are so far
  /// apart (is_repeated_id()), since the last decode() or clear().
  [[nodiscard]] std::uint32_t repeated_ids() const noexcept { return repeated_ids_; }
  /// Frames with a tag that this version does not know, skipped.
  [[nodiscard]] std::uint32_t unknown_frames() const noexcept { return unknown_frames_; }

 private:
  DecodeCode decode_into_empty(std::string_view record);
  DecodeCode read_frames(std::string_view record);
  bool append_runs(std::string_view payload);
  bool append_entry(std::string_view payload);
  bool append_reservation(std::string_view payload);
  [[nodiscard]] bool columns_are_canonical() const noexcept;

  void merge_reservations(const Ledger& other);
  void settle_reservations();
  void raise_erased_before(Instant until) noexcept;
  void raise_complete_since(Instant since) noexcept;
  void apply_erasure();

  void insert(const Entry& entry);
  void insert_column_values(std::size_t position, const Entry& entry);
  void erase_column_values(std::size_t position);
  void settle_loose();
  void merge_loose();
  void interleave_loose();
  void rebuild_with_loose();
  template <typename Keep>
  void keep_if(Keep keep);

  Column<Run> runs_;
  Column<Instant> times_;
  Column<std::uint64_t> creatives_;
  Column<std::uint32_t> fingerprints_;
  std::optional<Instant> erased_before_;
  std::optional<Instant> complete_since_;
  std::uint32_t unknown_frames_ = 0;
  std::uint32_t repeated_ids_ = 0;
  std::vector<Reservation> reservations_;
  /// Entries that are not in the columns yet; empty between calls.
  std::vector<Entry> loose_;
};

}  // namespace fcap::ledger
