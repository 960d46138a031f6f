#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "events/event_decoder.h"

namespace fcap::updater {

/// A number that one thread changes and any thread may read.
class Counter {
 public:
  void add(std::uint64_t n = 1) noexcept { value_.fetch_add(n, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const noexcept {
    return value_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> value_{0};
};

class Gauge {
 public:
  void set(std::int64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_{0};
};

/// What the pipeline has done and where it stands. Metrics, health and tests read it.
///
/// Thread safety: every member may be read at any time from any thread.
struct PipelineCounters {
  static constexpr std::size_t kRejections =
      static_cast<std::size_t>(events::Rejection::kInFuture) + 1;

  // Messages and what became of them. read = written + erasures + too_old + null_user + rejected +
  // those still in flight + those read again after a rewind or rebalance.
  Counter messages_read;
  Counter message_bytes_read;
  Counter events_written;  ///< acknowledged by Redis
  Counter erasures_written;
  Counter events_too_old;
  Counter events_null_user;
  std::array<Counter, kRejections> events_rejected;  ///< by events::Rejection, acknowledged or not
  Counter dead_letters_delivered;
  Counter dead_letter_failures;  ///< attempts; each is tried again

  // Writes to Redis.
  Counter batches_written;
  Counter user_writes;     ///< appends acknowledged; several events of one user are one
  Counter bytes_appended;  ///< acknowledged
  Counter write_failures;  ///< attempts that failed or timed out; each is tried again

  // Marks.
  Counter marks_written;
  Counter mark_conflicts;   ///< the mark in Redis was not the one written last
  Counter marks_missing;    ///< no mark found: rewound to the start of retention
  Counter rewinds;          ///< seeks to an earlier offset, for whatever reason
  Counter offsets_rewound;  ///< how far, summed

  // Kafka.
  Counter partitions_assigned;
  Counter partitions_revoked;
  Counter partitions_lost;  ///< of those revoked: taken away without a chance to commit
  Counter commits;          ///< acknowledged by the broker
  Counter commit_failures;
  Counter offset_resets;    ///< a partition went on below its position: its log was made anew
  Counter offsets_skipped;  ///< offsets that were gone when they were asked for
  Counter consumer_errors;
  Counter pauses;

  // Where it stands.
  Gauge assigned_partitions;
  Gauge batches_in_flight;
  Gauge bytes_in_flight;
  Gauge paused;                ///< 1: partitions are paused
  Gauge redis_failing;         ///< 1: writes or marks are being tried again
  Gauge dead_letters_failing;  ///< 1: the dead-letter topic does not take what it is sent
  Gauge verifying;             ///< partitions whose mark is being compared with their position
  Gauge lag_events;       ///< from the acknowledged position to the end, over assigned partitions
  Gauge newest_event_ms;  ///< the latest event time written; 0: none yet
  Gauge trim_now_ms;      ///< the trimming clock: min(local clock, newest broker timestamp)
  Gauge last_loop_ms;     ///< steady clock at the main loop's last turn: a watchdog's pulse
};

}  // namespace fcap::updater
