#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include <fcap/defaults.h>

namespace fcap::updater {

struct MarkOptions {
  std::string key_prefix = kDefaultKeyPrefix;
  std::string group_id;
  std::string topic;
  /// A mark expires only a little later than the events it vouches for: if the clock of Redis' host
  /// jumps and all records expire, so do the marks. An older mark may expire: everything before it
  /// has expired, and without a mark reading starts at the start of the retention.
  std::chrono::milliseconds retention = kDefaultRetention;
  std::chrono::milliseconds deadline{1000};
  /// Between two marks of a partition that makes progress, and of one that does not.
  std::chrono::milliseconds interval{100};
  std::chrono::milliseconds idle_interval{1000};
  std::chrono::milliseconds backoff_min{20};
  std::chrono::milliseconds backoff_max{1000};
  std::uint64_t jitter_seed = 1;
  /// How often each partition's log is checked, and the least time between two checks when
  /// something has happened to Kafka's brokers.
  std::chrono::milliseconds log_interval{60'000};
  std::chrono::milliseconds log_interval_min{1000};
  /// A stretch of at least so many offsets that may be missing is not read in line, because every
  /// later message would wait for it: it becomes a gap of the mark, reading continues, and the gap
  /// filler reads it meanwhile. nullopt: everything is read in line, the gaps of a mark as well.
  std::optional<std::int64_t> gap_min;
  /// Gaps are filled in pieces of this many offsets, the newest first.
  std::int64_t piece_offsets_max = 200'000;
};

}  // namespace fcap::updater
