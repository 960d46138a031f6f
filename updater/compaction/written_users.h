#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/defaults.h>

namespace fcap::updater {

/// The records that were appended to lately: a bounded table, oldest write first. Places are used
/// again with their buffers, so a warm table does not allocate.
///
/// Not thread-safe.
class WrittenUsers {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    std::size_t users_max = 1'000'000;
    std::size_t tail_bytes_min = 256;
    double tail_share = 0.25;
    /// A record this much (and its share) above the bound is due at once, whatever is known of it.
    std::size_t record_bytes_max = kDefaultRecordBytesMax;
  };

  explicit WrittenUsers(const Limits& limits);

  enum class NoteOutcome : std::uint8_t {
    kRemembered,
    kDue,   ///< it is to be compacted now, and is no longer in the table
    kFull,  ///< no room: it is not in the table
  };
  /// What a record is found by.
  [[nodiscard]] static std::uint64_t hash_of(std::string_view key) noexcept;
  /// Prefetch what note() will read, in this order: each reads what the one before has fetched.
  /// Called for a hundred records one after the other, they wait for memory about as long as for
  /// one.
  void prefetch_bucket(std::uint64_t hash) const noexcept;
  void prefetch_place(std::uint64_t hash) const noexcept;
  void prefetch_neighbours(std::uint64_t hash) const noexcept;

  /// A record was appended to. `now` never goes back.
  NoteOutcome note(std::string_view key, std::uint64_t hash, std::size_t length_after_bytes,
                   std::size_t appended_bytes, Clock::time_point now);
  NoteOutcome note(std::string_view key, std::size_t length_after_bytes, std::size_t appended_bytes,
                   Clock::time_point now) {
    return note(key, hash_of(key), length_after_bytes, appended_bytes, now);
  }

  /// A record is to be looked at again once it is quiet, whatever its size. False: no room.
  bool remember(std::string_view key, Clock::time_point now);

  /// Takes out the record whose last write is the oldest, if that was at or before `until`.
  bool take_quiet(Clock::time_point until, std::string& key);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct WrittenUser {
    std::string key;
    std::uint64_t hash = 0;
    std::uint32_t base_bytes = 0;
    std::uint32_t tail_bytes = 0;
    Clock::time_point last_write;
    std::uint32_t older = kNone;
    std::uint32_t newer = kNone;
    std::uint32_t next = kNone;  // in its bucket, or among the free places
  };

  [[nodiscard]] std::uint32_t find(std::uint64_t hash) const noexcept;
  [[nodiscard]] bool is_due(const WrittenUser& place, std::size_t length_bytes) const noexcept;
  std::uint32_t add(std::string_view key, std::uint64_t hash);
  void remove(std::uint32_t index) noexcept;
  void link_newest(std::uint32_t index) noexcept;
  void unlink(std::uint32_t index) noexcept;
  void grow_buckets();
  // Two users of one hash, if ever there are, share a place: one of them is left to the sweep.
  std::uint32_t& bucket(std::uint64_t hash) noexcept {
    return buckets_[hash & (buckets_.size() - 1)];
  }

  Limits limits_;
  std::vector<WrittenUser> places_;
  std::vector<std::uint32_t> buckets_;  // a power of two
  std::uint32_t free_ = kNone;
  std::uint32_t oldest_ = kNone;
  std::uint32_t newest_ = kNone;
  std::size_t size_ = 0;
};

}  // namespace fcap::updater
