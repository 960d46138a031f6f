#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/time.h>

#include "ledger/ledger.h"

/// Ledgers to bytes. The format, byte by byte: docs/ledger-format.md.
namespace fcap::ledger {

/// Appends to `out` the bytes that add `entries` to any record when they are put behind it: what
/// APPEND is given. 19 bytes per entry, 25 with a creative. Times outside of what a record holds
/// are moved to the nearest instant that it does (see Entry::time).
void append_entries(std::span<const Entry> entries, std::string& out);

/// Appends to `out` the 8 bytes that erase everything up to and including `until` from any record,
/// permanently.
void append_erased_before(Instant until, std::string& out);

/// Appends to `out` the frame that adds a reservation to any record, or releases it where
/// `released` is set: 23 bytes, 29 with a creative. Its life is cut to what four bytes hold (49.7
/// days).
void append_reservation(const Reservation& reservation, std::string& out);

/// Says which entries a size-trimmed record must keep first. Rules know; the ledger does not.
class KeepPolicy {
 public:
  /// Sets keep[i] for each entry (index into the ledger's columns) that some rule may need. `keep`
  /// comes as long as the columns, all false.
  virtual void mark_needed(const Ledger& ledger, std::vector<bool>& keep) const = 0;

 protected:
  ~KeepPolicy() = default;
};

struct CompactOptions {
  /// Entries with time <= trim_now - retention are left out.
  std::chrono::milliseconds retention = kDefaultRetention;
  /// The trimming clock: the earliest of all clocks that are known. The epoch trims nothing.
  Instant trim_now;
  /// The record is trimmed to this size: what `keep` marks stays (newest first if even that is too
  /// much), then the newest overall; complete_since says what was dropped. A bound below 64 bytes
  /// is taken as 64, so that the markers always fit.
  std::size_t record_bytes_max = kDefaultRecordBytesMax;
  /// May be null: only the newest stay.
  const KeepPolicy* keep = nullptr;
};

struct Compacted {
  /// Canonical: equal ledgers give equal bytes. Empty: nothing is left to store, and the key can be
  /// deleted (if it still holds the original).
  std::string record;
  std::size_t expired_entries = 0;  ///< left out for age
  std::size_t dropped_entries = 0;  ///< left out for size
  /// Reservations and frames with unknown tags that were left out for size.
  std::size_t dropped_frames = 0;
};

/// Encodes a ledger as dense runs. Frames with unknown tags in `original` (the record that the
/// ledger was decoded from) are carried over as they are, so an older version does not destroy what
/// a newer one wrote.
[[nodiscard]] Compacted compact(const Ledger& ledger, std::string_view original,
                                const CompactOptions& options);

/// How many bytes of a record are already in compacted form: everything up to the first appended
/// frame (an entry, or an erasure behind the runs). The rest is the tail, which compaction folds
/// in. A record that cannot be walked counts as all tail.
[[nodiscard]] std::size_t compacted_bytes(std::string_view record) noexcept;

}  // namespace fcap::ledger
