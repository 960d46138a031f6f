#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/time.h>

#include "events/event.h"
#include "ledger/ledger.h"

namespace fcap::updater {

/// One append per user: what a batch of events becomes. The bytes of all users lie in two buffers
/// that are kept from batch to batch, so a warm WriteSet does not allocate.
class WriteSet {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return writes_.size(); }
  [[nodiscard]] std::string_view key(std::size_t i) const noexcept {
    return std::string_view(keys_).substr(writes_[i].key_offset, writes_[i].key_bytes);
  }
  [[nodiscard]] std::string_view bytes(std::size_t i) const noexcept {
    return std::string_view(bytes_).substr(writes_[i].offset, writes_[i].bytes);
  }
  /// A hash of the user's id.
  [[nodiscard]] std::uint64_t hash(std::size_t i) const noexcept { return writes_[i].hash; }
  [[nodiscard]] Instant expire_at(std::size_t i) const noexcept { return writes_[i].expire_at; }
  [[nodiscard]] std::size_t record_bytes() const noexcept { return bytes_.size(); }
  [[nodiscard]] std::size_t total_bytes() const noexcept { return keys_.size() + bytes_.size(); }
  /// The newest event's time over all users; the epoch when empty.
  [[nodiscard]] Instant newest() const noexcept { return newest_; }
  void clear() noexcept;

 private:
  friend class Coalescer;
  struct UserWrite {
    std::uint64_t hash;
    std::uint32_t key_offset;
    std::uint32_t key_bytes;
    std::uint32_t offset;
    std::uint32_t bytes;
    Instant expire_at;
  };
  std::string keys_;
  std::string bytes_;
  std::vector<UserWrite> writes_;
  Instant newest_;
};

/// Groups events by user. Nothing is allocated per event once the buffers have grown.
///
/// Not thread-safe.
class Coalescer {
 public:
  struct Options {
    std::string key_prefix = kDefaultKeyPrefix;
    std::chrono::milliseconds retention = kDefaultRetention;
  };

  explicit Coalescer(Options options);

  /// Returns the number of the write of finish() that the event will be in.
  std::size_t add(const events::Event& event);

  /// Entries and erasures added since the last finish().
  [[nodiscard]] std::size_t events() const noexcept { return items_.size(); }
  [[nodiscard]] std::size_t users() const noexcept { return users_.size(); }

  /// Visits each user with what was added for it: visit(key, entries, erased_until) where `entries`
  /// is a span of ledger::Entry and `erased_until` a std::optional<Instant>. For callers that need
  /// the entries rather than bytes (replay).
  template <typename Visit>
  void for_each_user(Visit&& visit) {
    for (std::size_t i = 0; i < users_.size(); ++i) visit_user(i, visit);
  }
  /// Does the same for one of them, `i` below users().
  template <typename Visit>
  void visit_user(std::size_t i, Visit&& visit) {
    gather(users_[i]);
    visit(key_of(users_[i]), scratch_, erased_until_);
  }

  /// Encodes what was added into `out` (whose contents are replaced) and starts again from empty.
  void finish(WriteSet& out) {
    finish(out, [](std::size_t, auto&, auto&) {});
  }
  /// Does the same for what `filter(user, entries, erased_until)` leaves of each user's entries and
  /// erasure; a user for whom nothing is left becomes no write.
  template <typename Filter>
  void finish(WriteSet& out, Filter&& filter) {
    out.clear();
    out.writes_.reserve(users_.size());
    for (std::size_t i = 0; i < users_.size(); ++i) {
      gather(users_[i]);
      filter(i, scratch_, erased_until_);
      if (!scratch_.empty() || erased_until_) encode(users_[i], out);
    }
    out.keys_.swap(keys_);
    clear();
  }

  /// Forgets what was added.
  void clear() noexcept;

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct BatchUser {
    std::uint64_t hash;
    std::uint32_t key_offset;
    std::uint32_t key_bytes;
    std::uint32_t first_item;
    std::uint32_t last_item;
    Instant newest;
  };
  struct UserEvent {
    ledger::Entry entry;
    std::uint32_t next;
    bool erasure;
  };
  struct UserSlot {
    std::uint64_t hash = 0;
    std::uint64_t round = 0;  // the slot is taken only if this is the current round
    std::uint32_t user = 0;
  };

  [[nodiscard]] std::uint32_t find_or_add_user(std::string_view user_id);
  [[nodiscard]] std::string_view key_of(const BatchUser& user) const noexcept {
    return std::string_view(keys_).substr(user.key_offset, user.key_bytes);
  }
  [[nodiscard]] std::string_view id_of(const BatchUser& user) const noexcept;
  void grow_slots();
  void gather(const BatchUser& user);
  void encode(const BatchUser& user, WriteSet& out) const;

  Options options_;
  std::string keys_;
  std::vector<BatchUser> users_;
  std::vector<UserEvent> items_;
  std::vector<UserSlot> slots_;  // open addressing; a power of two, at most half full
  std::uint64_t round_ = 1;
  std::vector<ledger::Entry> scratch_;
  std::optional<Instant> erased_until_;
};

}  // namespace fcap::updater
