#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
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
  /// What compaction leaves of a record; a replay leaves more (untrimmed_bytes_max()).
  std::size_t record_bytes_max = kDefaultRecordBytesMax;
  std::chrono::milliseconds deadline{2000};
  std::chrono::milliseconds backoff_min{20};
  std::chrono::milliseconds backoff_max{2000};
  /// Records read and written at the same time.
  std::size_t records_in_flight_max = 512;
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
  /// A user's record, until everything is in it.
  struct Task final : StoreCompletion {
    explicit Task(ReplayWriter& owner) : writer(&owner) {}
    void complete(const StoreOutcome& outcome) noexcept override;
    ReplayWriter* writer;
    std::string key;
    std::vector<ledger::Entry> entries;
    std::optional<Instant> erased_until;
    bool writing = false;
    // A write whose outcome is unknown may have added these.
    bool maybe_added = false;
    // What was read is no record, and will not become one by reading it again.
    bool foreign = false;
    StoreCode code = StoreCode::kOk;
    std::string record;
    std::string desired;
    ReplayCounts counts;  // if the write succeeds
  };

  void read_more(Coalescer& events);
  void read(Task& task);
  void go_on(Task& task, Instant trim_now, ReplayCounts& counts);
  void was_read(Task& task, Instant trim_now, ReplayCounts& counts);
  void was_written(Task& task, ReplayCounts& counts);
  void failed(Task& task, ReplayCounts& counts);
  void done(Task& task, const ReplayCounts& found, ReplayCounts& counts);
  /// What the record lacks, in bytes to be appended; `found` says what it has.
  std::string missing_of(const Task& task, ReplayCounts& found);
  void pause(const std::stop_token& stop);
  /// Waits for operations that have ended.
  void await();
  void one_ended(Task& task, const StoreOutcome& outcome) noexcept;

  Store* store_;
  ReplayWriteOptions options_;
  LogCallback log_;
  base::Backoff backoff_;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<Task*> idle_;
  std::vector<Task*> again_;    // to be read again
  std::size_t next_user_ = 0;   // of the events that are being written
  std::size_t in_flight_ = 0;   // tasks with an operation under way
  bool failing_ = false;        // some operation has failed: nothing more is read before a pause
  std::uint32_t failures_ = 0;  // pauses since a record was done
  ledger::Ledger ledger_;
  std::vector<Task*> ended_now_;  // scratch of await()

  std::mutex mutex_;
  std::condition_variable ended_changed_;
  std::vector<Task*> ended_;  // guarded by mutex_
  std::string failure_;       // guarded by mutex_: of the operation that failed last
};

}  // namespace fcap::updater
