#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include <fcap/time.h>

namespace fcap::updater {

/// Where the newest gap of a partition ends.
struct GapEnd {
  std::int32_t partition = 0;
  std::optional<std::int64_t> to = {};  ///< none: the partition has no gap
};

/// What an updater knows of the open gaps of a topic, for Checkers.
struct OpenGaps {
  std::string group_id = {};
  std::string topic = {};
  /// By partition: before which instant the events are that may be missing; none: no event is. Of
  /// partitions that are not in it this updater knows nothing.
  std::map<std::int32_t, std::optional<Instant>> missing_before = {};

  friend bool operator==(const OpenGaps&, const OpenGaps&) = default;
};

/// Works out before which instant the events of open gaps are. When a gap opens, or is taken over
/// from another updater, that is an instant which no event that was accepted so far reaches. While
/// a gap is filled, the newest segment first, it falls to the newest that a filled segment had:
/// what was written to the log earlier is not newer, give or take what producers may be ahead.
///
/// Thread safety: one thread.
class GapTimes {
 public:
  /// Takes the partitions whose gaps are known. `latest`: every event accepted so far is before it.
  void look(std::span<const GapEnd> partitions, Instant latest);

  /// The segment that begins at `from`, the newest of its partition, has been filled. What precedes
  /// it is before `newest`; none: nothing was found in it.
  void filled(std::int32_t partition, std::int64_t from, std::optional<Instant> newest);

  /// As of the last look().
  [[nodiscard]] std::map<std::int32_t, std::optional<Instant>> missing_before() const;

 private:
  struct Known {
    std::optional<std::int64_t> to;
    Instant before{};
  };
  std::map<std::int32_t, Known> partitions_;
};

}  // namespace fcap::updater
