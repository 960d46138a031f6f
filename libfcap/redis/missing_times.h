#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <fcap/time.h>

#include "redis/config_record.h"

namespace fcap::redis {

/// Before when events may be missing, by the slot of a user's key, for threads that check.
///
/// Thread safety: set() by one thread at a time; everything else by any thread, also meanwhile.
/// Readers take no lock and allocate nothing.
class MissingTimes {
 public:
  /// What ConfigRecord::missing_by_slot() gives. For a moment some slots may still be as they were.
  void set(const std::vector<MissingEvents>& missing);

  /// The latest instant of all; nullopt: no event is known to be missing. One relaxed load.
  [[nodiscard]] std::optional<Instant> latest() const noexcept {
    return instant_of(latest_ms_.load(std::memory_order_relaxed));
  }
  /// Says the same of the users of one slot, below 16384.
  [[nodiscard]] std::optional<Instant> of_slot(std::uint16_t slot) const noexcept;

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  using Table = std::array<std::atomic<std::int64_t>, SlotSet::kSlots>;

  [[nodiscard]] static std::optional<Instant> instant_of(std::int64_t ms) noexcept {
    return ms == kNone ? std::nullopt : std::optional(instant_from_ms(ms));
  }

  std::atomic<std::int64_t> latest_ms_{kNone};
  // By slot; null until a statement is about some slots only. Then it is kept for good, because a
  // reader may be in it.
  std::atomic<const Table*> by_slot_{nullptr};
  std::unique_ptr<Table> table_;    // set() only
  std::vector<MissingEvents> set_;  // set() only: what was set last
};

}  // namespace fcap::redis
