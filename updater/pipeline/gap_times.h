#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include <fcap/time.h>

#include "redis/config_record.h"
#include "updater/marks/mark_value.h"

namespace fcap::updater {

/// Where the newest gap of a partition ends.
struct GapEnd {
  std::int32_t partition = 0;
  std::optional<std::int64_t> to = {};  ///< nullopt: the partition has no gap
  /// The slots of all users whose events may be in a gap of the partition.
  SlotSet slots = SlotSet::all();
};

/// Events that stay missing: Redis lacks them, and Kafka no longer has the messages that held them.
struct ExpiredEvents {
  std::int32_t partition = 0;
  /// A later message, or its event, has this time; nullopt: it is not known.
  std::optional<Instant> newest = {};
  SlotSet slots = SlotSet::all();  ///< those of the users whose events they may be
};

/// What an updater knows of the open gaps of its topic, for Checkers.
struct OpenGaps {
  /// By partition, which events may be missing; nullopt: none is. This updater knows nothing about
  /// other partitions.
  std::map<std::int32_t, std::optional<redis::MissingEvents>> missing_before = {};
  /// Events that stay missing, because Kafka no longer has the messages that held them.
  std::optional<redis::MissingEvents> expired = {};

  friend bool operator==(const OpenGaps&, const OpenGaps&) = default;
};

/// Computes for each open gap an instant that is later than all its events. When a gap opens, or is
/// taken over from another updater, that is an instant which no event that was accepted so far
/// reaches. While a gap is filled, the newest piece first, the instant falls to the newest time
/// in the piece filled last: messages that were written to the log earlier are not newer, except
/// by as much as producers' clocks may be ahead. Each gap has one instant for the users of all its
/// slots; when slots are added, nobody knows what their users lack, and it begins again.
/// Also the instant before which events are missing for good.
///
/// Thread safety: one thread.
class GapTimes {
 public:
  /// `future_allowed` is IntakeOptions::future_allowed.
  explicit GapTimes(std::chrono::milliseconds future_allowed) : future_allowed_(future_allowed) {}

  /// Takes the partitions whose gaps are known. `latest`: every event accepted so far is before it.
  void look(std::span<const GapEnd> partitions, Instant latest);

  /// The piece that begins at `from`, the newest of its partition, has been filled. None of its
  /// events is later than `newest`; nullopt: it had none.
  void filled(std::int32_t partition, std::int64_t from, std::optional<Instant> newest);
  /// Takes what was found to be missing for good. `latest`: as in look().
  void expired(std::span<const ExpiredEvents> found, Instant latest);

  /// As of the last look().
  [[nodiscard]] OpenGaps open_gaps() const;

 private:
  struct KnownEnd {
    std::optional<std::int64_t> to;
    Instant before{};
    SlotSet slots;
  };
  std::chrono::milliseconds future_allowed_;
  std::map<std::int32_t, KnownEnd> partitions_;
  std::optional<redis::MissingEvents> expired_;  // as OpenGaps::expired
};

}  // namespace fcap::updater
