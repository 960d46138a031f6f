#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/log.h>
#include <fcap/store.h>
#include <fcap/time.h>

#include "base/backoff.h"
#include "ledger/ledger.h"
#include "updater/pipeline/coalescer.h"
#include "updater/pipeline/presence.h"

namespace fcap::updater {

/// What a replay has put into records, and found there.
struct ReplayCounts {
  std::uint64_t added = 0;          ///< events that were missing
  std::uint64_t already_there = 0;  ///< events that were not
  std::uint64_t erased = 0;         ///< events before their user's erasure, which stay erased
  std::uint64_t trimmed = 0;  ///< events before a size-trimmed record's complete_since: left out
  std::uint64_t erasures_added = 0;  ///< erasures that were missing
  std::uint64_t erasures_already_there = 0;
  std::uint64_t records_changed = 0;
  std::uint64_t records_unreadable = 0;  ///< left as they are
  std::uint64_t conflicts = 0;  ///< a record changed between reading and writing: done again
  std::uint64_t retries = 0;    ///< operations that failed and were tried again

  friend bool operator==(const ReplayCounts&, const ReplayCounts&) = default;
};

struct ReplayWriteOptions {
  std::chrono::milliseconds retention = kDefaultRetention;
  std::chrono::milliseconds deadline{2000};
  std::chrono::milliseconds backoff_min{20};
  std::chrono::milliseconds backoff_max{2000};
  /// Records read and written at the same time.
  std::size_t records_in_flight_max = 256;
  std::uint64_t jitter_seed = 1;
};

/// Reads users' records and puts back only what is missing, by compare-and-set: a record that lacks
/// nothing is not touched, neither its bytes nor its expiry.
///
/// Thread safety: one thread; it blocks in write().
class ReplayWriter {
 public:
  ReplayWriter(Store& store, const ReplayWriteOptions& options, LogCallback log);

  /// Brings everything in `events` into the records, however often that has to be tried, and
  /// empties it. False: `stop` came first; then some of it may be missing still.
  bool write(Coalescer& events, Instant trim_now, const std::stop_token& stop,
             ReplayCounts& counts);

 private:
  struct Task final : StoreCompletion {
    void complete(const StoreOutcome& outcome) noexcept override;
    ReplayWriter* writer = nullptr;
    std::string key;
    std::vector<ledger::Entry> entries;
    std::optional<Instant> erased_until;
    bool done = false;
    bool writing = false;
    // A write whose outcome is unknown may have added these.
    bool maybe_added = false;
    StoreCode code = StoreCode::kOk;
    std::string record;
    std::string desired;
    Instant expire_at;
    ReplayCounts counts;  // if the write succeeds
  };

  void prepare(Coalescer& events);
  void run_chunk(std::span<Task*> chunk, Instant trim_now, ReplayCounts& counts, bool& failing);
  void judge(Task& task, Instant trim_now, ReplayCounts& counts);
  void conclude(Task& task, ReplayCounts& counts, bool& failing);
  void await();
  void start(std::size_t operations);
  void one_ended(const StoreOutcome& outcome) noexcept;

  Store* store_;
  ReplayWriteOptions options_;
  LogCallback log_;
  base::Backoff backoff_;
  std::vector<Task> tasks_;
  std::size_t used_tasks_ = 0;
  std::vector<Task*> pending_;
  ledger::Ledger ledger_;

  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t outstanding_ = 0;  // guarded by mutex_
  std::string failure_;          // guarded by mutex_: of the operation that failed last
};

}  // namespace fcap::updater
