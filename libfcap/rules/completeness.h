#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <fcap/time.h>

namespace fcap::rules {

/// From when on a user's events are all there: the one owner of the question whether what is said
/// of them is complete. Older ones may be missing because the writer is reading them again after a
/// loss, because a replica does not have them yet, or because the record was trimmed for its size.
class Completeness {
 public:
  /// No event is missing.
  constexpr Completeness() noexcept = default;
  /// Events before `missing_before` may be missing; nullopt: none is known to be.
  constexpr explicit Completeness(std::optional<Instant> missing_before) noexcept
      : since_(missing_before) {}
  /// What a replica says at `now` lacks the latest events, so that no window is complete.
  [[nodiscard]] static constexpr Completeness of_replica(Instant now) noexcept {
    return Completeness(now);
  }

  /// Says the same of a record that was trimmed: Ledger::complete_since().
  [[nodiscard]] constexpr Completeness trimmed(
      std::optional<Instant> complete_since) const noexcept {
    // An empty std::optional compares less than any instant.
    return Completeness(std::max(since_, complete_since));
  }

  /// Whether the events since `from` are all there.
  [[nodiscard]] constexpr bool covers(Instant from) const noexcept {
    return !since_ || *since_ <= from;
  }

  /// Whether a count up to `limit` is complete of which nobody knows since when it counts. With a
  /// limit of 0, nothing is counted.
  [[nodiscard]] constexpr bool covers_unknown(std::uint32_t limit) const noexcept {
    return limit == 0 || !since_;
  }

  /// Before when events may be missing, to be told; nullopt: none is known to be.
  [[nodiscard]] constexpr std::optional<Instant> missing_before() const noexcept { return since_; }

 private:
  std::optional<Instant> since_;
};

}  // namespace fcap::rules
