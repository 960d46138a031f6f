#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <fcap/time.h>

namespace fcap::updater {

/// Remembers from the last writes how long some records are and when they expire at the earliest.
/// If a record's length after an append is the remembered one plus the bytes appended, nothing else
/// has changed it, so its expiry needs no second command. Wrong or forgotten lengths cost that
/// command and nothing else.
///
/// A fixed table in which records replace each other. Records are found by a hash of their keys.
///
/// Not thread-safe.
class KnownRecords {
 public:
  /// `records_max` is rounded up to a power of two.
  explicit KnownRecords(std::size_t records_max);

  /// The length of a record that expires at or after `expire_at`; nullopt: not known.
  [[nodiscard]] std::optional<std::size_t> length(std::uint64_t hash,
                                                  Instant expire_at) const noexcept;
  /// An append to a record of known length is pending; the record will be this long.
  void will_be(std::uint64_t hash, std::size_t bytes) noexcept;
  /// A record has this length and expires at `expire_at` or later.
  void learn(std::uint64_t hash, std::size_t bytes, Instant expire_at) noexcept;
  void forget(std::uint64_t hash) noexcept;
  void clear() noexcept;

  /// Prefetches what is known of a record.
  void prefetch(std::uint64_t hash) const noexcept;

 private:
  struct KnownRecord {
    std::uint64_t hash = 0;
    std::uint32_t bytes = 0;  // 0: nothing is known
    std::uint32_t expire_s = 0;
  };
  [[nodiscard]] KnownRecord& at(std::uint64_t hash) noexcept { return records_[hash & mask_]; }
  [[nodiscard]] const KnownRecord& at(std::uint64_t hash) const noexcept {
    return records_[hash & mask_];
  }

  std::vector<KnownRecord> records_;
  std::uint64_t mask_;
};

}  // namespace fcap::updater
