#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/rule_set.h>
#include <fcap/status.h>
#include <fcap/store.h>

#include "redis/client.h"
#include "updater/compaction/record_compactor.h"
#include "updater/compaction/sweep_keys.h"

namespace fcap::updater {

struct SweepOptions {
  std::string key_prefix = kDefaultKeyPrefix;
  std::int64_t keys_per_second = 5'000;
  std::int64_t scan_count = 500;  ///< of SCAN; in a cluster: keys that are asked about at once
  std::chrono::milliseconds deadline{1'000};
  RecordCompactor::Options records;
  std::chrono::milliseconds progress_interval{1'000};
  /// A Redis that does not answer is asked again for this long before the sweep gives up.
  std::chrono::milliseconds patience{60'000};
};

struct SweepProgress {
  std::uint64_t records = 0;
  /// Keys in the database, the others included: an upper bound.
  std::uint64_t keys_total = 0;
  std::chrono::milliseconds elapsed{0};
  std::optional<std::chrono::milliseconds> left;  ///< none: not known yet
};

struct SweepSummary {
  bool complete = false;  ///< false: stopped before the end
  std::uint64_t records = 0;
  std::uint64_t compacted = 0;
  std::uint64_t unneeded = 0;
  std::uint64_t expiries_repaired = 0;  ///< records that would never have expired
  std::uint64_t undecodable = 0;        ///< left alone
  std::uint64_t conflicts = 0;          ///< changed each time; the updater has them
  std::uint64_t failed = 0;
  std::uint64_t bytes_before = 0;  ///< of the records looked at
  std::uint64_t bytes_after = 0;
  std::chrono::milliseconds elapsed{0};
};

/// Goes through all records once, at a bounded rate, and rewrites those with a tail, with entries
/// past the retention, or without an expiry. Safe beside updaters: a record that changes meanwhile
/// is read again or left to them.
///
/// One thread calls run(), once.
class Sweep {
 public:
  Sweep(redis::Client& client, Store& store, const SweepOptions& options,
        std::shared_ptr<const RuleSet> rules, std::function<void(const SweepProgress&)> progress);

  /// Blocks until the end or `stop`. Fails when Redis does not answer for `patience`.
  Result<SweepSummary> run(const std::stop_token& stop);

 private:
  using Clock = std::chrono::steady_clock;

  Status begin();
  Status find_keys(const std::stop_token& stop);
  void sweep_keys(std::span<const std::string> keys, const std::stop_token& stop);
  void count(const RecordCompactor::Done& done);
  void keep_pace(const std::stop_token& stop);
  void report(Clock::time_point now);
  [[nodiscard]] std::optional<Instant> trim_now() const;

  redis::Client* client_;
  const SweepOptions options_;
  std::function<void(const SweepProgress&)> progress_;
  Metrics metrics_;
  SweepSummary summary_;
  std::chrono::milliseconds server_ahead_{0};  // of the local clock, at most 0
  std::uint64_t keys_total_ = 0;
  std::vector<std::string> keys_;
  std::vector<bool> without_expiry_;
  Clock::time_point began_{};
  Clock::time_point report_due_{};
  std::unique_ptr<SweepKeys> source_;
  std::unique_ptr<redis::WatchedRecords> watched_;  // null in a cluster
  RecordCompactor records_;
};

/// One line for people.
[[nodiscard]] std::string progress_line(const SweepProgress& progress);
[[nodiscard]] std::string summary_text(const SweepSummary& summary);
[[nodiscard]] std::string summary_json(const SweepSummary& summary);

}  // namespace fcap::updater
