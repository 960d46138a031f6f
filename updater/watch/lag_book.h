#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>

#include <fcap/time.h>

namespace fcap::updater {

/// How far a member has processed a partition: everything below is done; nullopt: unknown.
struct PartitionDone {
  std::int32_t partition = 0;
  std::optional<std::int64_t> below;
};

/// How far processing lags behind the log. Unknown values are empty, never 0.
struct Lag {
  std::string topic;
  std::optional<std::int64_t> messages;  ///< of all assigned partitions together
  std::map<std::int32_t, std::int64_t> by_partition;
  /// The timestamp of the oldest message that is not done. Empty if all are done, or if it is
  /// unknown for some partition.
  std::optional<Instant> oldest;
};

/// Computes the lag from what is known of the assigned partitions' ends and of the work on them.
/// Information that is too old counts as unknown. Free of I/O and of clocks.
///
/// Thread safety: none.
class LagBook {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Offsets = std::map<std::int32_t, std::int64_t>;

  explicit LagBook(std::chrono::milliseconds known_for) : known_for_(known_for) {}

  /// `joined`: the group has assigned partitions to this member, even if none.
  void set_done(std::span<const PartitionDone> done, bool joined);
  void set_ends(const Offsets& ends, TimePoint now);
  /// Where processing will begin in the partitions whose progress is unknown.
  void set_starts(const Offsets& starts);
  /// The timestamps of the messages at the offsets that behind() gave, as far as they were found.
  void set_oldest(const Offsets& asked, const std::map<std::int32_t, Instant>& found,
                  TimePoint now);

  [[nodiscard]] std::set<std::int32_t> assigned() const;
  /// The partitions for which neither the progress nor the start is known.
  [[nodiscard]] std::set<std::int32_t> without_start() const;
  /// The first offsets that are not done, for at most `partitions_max` of the partitions that lag
  /// behind: those first whose timestamp was queried longest ago.
  [[nodiscard]] Offsets behind(std::size_t partitions_max, TimePoint now) const;

  [[nodiscard]] Lag lag(TimePoint now) const;
  /// The ends that are known and recent enough.
  [[nodiscard]] Offsets ends(TimePoint now) const;

 private:
  struct LogEnd {
    std::int64_t offset = 0;
    TimePoint at;
  };
  // The timestamp of the message at `offset`. It stands for the oldest one that is not done as long
  // as everything below `offset` is done.
  struct Oldest {
    std::int64_t offset = 0;
    Instant timestamp;
    TimePoint at;
  };

  [[nodiscard]] std::optional<std::int64_t> done_below(std::int32_t partition) const;
  [[nodiscard]] const Oldest* oldest_of(std::int32_t partition) const;
  [[nodiscard]] std::optional<std::int64_t> lag_of(std::int32_t partition, TimePoint now) const;

  const std::chrono::milliseconds known_for_;
  bool joined_ = false;
  std::map<std::int32_t, std::optional<std::int64_t>> done_;
  std::map<std::int32_t, LogEnd> ends_;
  Offsets starts_;
  std::map<std::int32_t, Oldest> oldest_;
};

}  // namespace fcap::updater
