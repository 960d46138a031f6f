#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace fcap::updater {

/// Says up to which offset everything of one partition is done, while batches of it finish in any
/// order. Work is begun in ascending ranges of offsets; offsets that lie between two ranges do not
/// exist in the partition (compacted away, or transaction markers) and hold nothing up.
///
/// Bounded: it holds one element per range between the oldest unfinished one and the newest, which
/// the pipeline bounds by its batches in flight.
///
/// Not thread-safe.
class OffsetTracker {
 public:
  using Ticket = std::uint64_t;

  /// `start`: the first offset that is still to be read; nullopt if it is not known yet (then the
  /// first range determines it).
  explicit OffsetTracker(std::optional<std::int64_t> start = std::nullopt) noexcept
      : low_water_(start), next_(start) {}

  /// Work on [first, end) begins. `first` must not lie below next_offset(), and `end` not below
  /// `first`.
  Ticket begin(std::int64_t first, std::int64_t end);

  /// That work is done. Each ticket once.
  void complete(Ticket ticket);

  /// Every offset below it is done; the offset to commit and to mark. nullopt: nothing is known
  /// yet.
  [[nodiscard]] std::optional<std::int64_t> low_water() const noexcept { return low_water_; }
  /// The offset behind the newest range begun: where the reader is.
  [[nodiscard]] std::optional<std::int64_t> next_offset() const noexcept { return next_; }

 private:
  struct TrackedRange {
    std::int64_t end;
    bool done;
  };
  std::deque<TrackedRange> ranges_;
  Ticket oldest_ = 0;  // the ticket of ranges_.front()
  std::optional<std::int64_t> low_water_;
  std::optional<std::int64_t> next_;
};

}  // namespace fcap::updater
