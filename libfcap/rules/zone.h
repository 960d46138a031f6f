#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <fcap/status.h>

namespace fcap::rules {

/// An IANA time zone as a table of its offset changes from 1970 to 2100, so that nothing on the
/// check path touches the time-zone library. Before and after those years the nearest offset holds.
/// All instants are milliseconds since 1970-01-01T00:00:00Z, days are day numbers (0: 1970-01-01).
///
/// Thread safety: immutable after load().
class Zone {
 public:
  /// Coordinated universal time, without any data.
  Zone();

  /// Reads the system's time-zone data. kNotFound for a name that it does not have.
  static Result<Zone> load(const std::string& name);

  /// The latest local date that has been reached by an instant. Where clocks go back over midnight
  /// it stays: a day that has begun does not begin again.
  [[nodiscard]] std::int64_t day_at(std::int64_t instant_ms) const noexcept;

  /// How far local clocks are ahead of UTC, in milliseconds.
  [[nodiscard]] std::int64_t offset_at(std::int64_t instant_ms) const noexcept;

  /// The first instant whose local date is `day` or later.
  [[nodiscard]] std::int64_t day_begins(std::int64_t day) const noexcept;

  /// When the local hour that holds an instant began: at hh:00, or at a jump of the clocks that
  /// changed the hour.
  [[nodiscard]] std::int64_t hour_begins(std::int64_t instant_ms) const noexcept;

  /// When the next local hour begins.
  [[nodiscard]] std::int64_t next_hour_begins(std::int64_t instant_ms) const noexcept;

 private:
  /// A stretch of time with one offset; it lasts until the next one begins.
  struct ZoneStretch {
    std::int64_t begin_ms = 0;
    std::int64_t offset_ms = 0;
    /// The latest local date reached by its end, over this and all earlier stretches.
    std::int64_t reached_day = 0;
  };

  void add(std::int64_t begin_ms, std::int64_t offset_ms);
  void finish();
  [[nodiscard]] std::size_t stretch_at(std::int64_t instant_ms) const noexcept;

  std::vector<ZoneStretch> stretches_;
};

/// The version of the system's time-zone data, such as "2024a"; "unknown" where it does not say.
[[nodiscard]] std::string zone_data_version();

}  // namespace fcap::rules
