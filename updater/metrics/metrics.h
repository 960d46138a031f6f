#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

namespace fcap::updater {

/// Only ever grows. Relaxed: exact once the writers are done, never torn.
class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A level. One that is not known has no sample.
class Gauge {
 public:
  static constexpr std::int64_t kUnknown = std::numeric_limits<std::int64_t>::min();

  void set(std::int64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  void add(std::int64_t n) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t value() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// How long things took, in buckets that double from 1 ms to about a minute.
class DurationHistogram {
 public:
  static constexpr std::size_t kBuckets = 17;

  void observe(std::chrono::microseconds duration, std::uint64_t times = 1) noexcept;

  /// The upper bound of a bucket; the one after the last is infinite.
  [[nodiscard]] static constexpr std::chrono::microseconds bound(std::size_t bucket) noexcept {
    return std::chrono::microseconds{std::int64_t{1000} << bucket};
  }
  [[nodiscard]] std::uint64_t in_bucket(std::size_t bucket) const noexcept {
    return counts_[bucket].load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::chrono::microseconds sum() const noexcept {
    return std::chrono::microseconds{sum_us_.load(std::memory_order_relaxed)};
  }

 private:
  std::array<std::atomic<std::uint64_t>, kBuckets + 1> counts_{};
  std::atomic<std::int64_t> sum_us_{0};
};

/// Everything the daemon counts about itself. Names, units and texts: list.cc, from which
/// docs/metrics.md is made. Any thread may write; a scrape reads.
struct Metrics {
  // Kafka.
  Counter messages;
  Counter message_bytes;
  Counter dead_letters;
  Counter dead_letter_failures;
  Counter commits;
  Counter commit_failures;
  Counter rebalances;
  Counter offset_resets;
  Counter log_unverified;
  Counter pauses;
  Gauge assigned_partitions;
  Gauge waiting_partitions;
  Gauge unreadable_partitions;
  Gauge paused_partitions;

  // Messages by what became of them; each is counted once when it is settled.
  static constexpr std::size_t kRejections = 17;  ///< as many as events::Rejection has
  std::array<Counter, kRejections> rejected;      ///< by events::Rejection
  Counter events_written;
  Counter events_too_old;
  Counter events_null_user;
  Counter erasures;

  // Redis.
  Counter batches;
  Counter records_written;
  Counter record_bytes_written;
  Counter write_retries;
  Gauge in_flight_bytes;
  DurationHistogram write_duration;  ///< a batch's first write to its last acknowledgement
  DurationHistogram event_delay;     ///< the broker's timestamp to Redis' acknowledgement

  // Marks.
  Counter marks_written;
  Counter mark_failures;
  Counter mark_losses;
  Gauge shards_away;
  Counter rewinds;
  Counter rewound_messages;
  Gauge gap_offsets;
  Counter gap_messages;
  Counter gap_records_unread;

  // Compaction.
  Counter compactions;
  Counter compaction_unneeded;
  Counter compaction_conflicts;
  Counter compaction_failures;
  Counter compaction_bytes_saved;
  Counter entries_expired;
  Counter entries_dropped;
  Counter repeated_ids;
  Counter undecodable_records;
  Counter unknown_frames;
  Counter queue_overflows;
  Gauge queued_users;
};

}  // namespace fcap::updater
