#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcap/defaults.h>
#include <fcap/rule_set.h>
#include <fcap/store.h>
#include <fcap/time.h>

#include "ledger/ledger.h"
#include "redis/watched_records.h"
#include "updater/metrics/metrics.h"

namespace fcap::updater {

/// How long a record may become while it is not known what rules need of it, where compaction would
/// leave `record_bytes_max`.
[[nodiscard]] constexpr std::size_t untrimmed_bytes_max(std::size_t record_bytes_max) noexcept {
  constexpr std::size_t kFactor = 16;
  return kFactor * std::min(record_bytes_max, SIZE_MAX / kFactor);
}

/// Rewrites records: reads them, merges and trims each, and puts them back if nobody has changed
/// them meanwhile. It knows no queue; its callers choose.
///
/// With WatchedRecords, those that were started go together, which costs Redis half as much. A
/// group in which a record has changed is put back one by one, by compare-and-set, which passes
/// over appends; so is everything without WatchedRecords, none waiting for another.
///
/// Thread safety: one thread calls start(), tick() and wait(); the store's completions come from
/// anywhere.
class RecordCompactor {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    std::chrono::milliseconds retention = kDefaultRetention;
    std::size_t record_bytes_max = kDefaultRecordBytesMax;
    /// Whether an oversized record is trimmed while there are no rules: right where none are
    /// configured; wrong where they have not come yet, since they would say what is needed.
    bool trim_without_rules = true;
    /// As in ledger::CompactOptions.
    std::size_t in_flight_max = 64;
    std::chrono::milliseconds deadline{1000};
    /// How often a record that was rewritten meanwhile is read again before it is left for later.
    std::uint32_t attempts_max = 3;
  };

  enum class CompactionOutcome : std::uint8_t {
    kCompacted,    ///< put back, smaller or with an expiry
    kUnneeded,     ///< it is compact as it is
    kMissing,      ///< there is no such record
    kConflict,     ///< it was rewritten each time
    kFailed,       ///< the store did not answer, or refused
    kUndecodable,  ///< not a record that this version can read; left alone
  };
  struct Done {
    std::string_view key;
    bool rewrite;  ///< as given to start()
    CompactionOutcome outcome;
    std::size_t bytes_before;
    std::size_t bytes_after;
  };
  using OnDone = std::function<void(const Done&)>;

  /// `trim_now`: the trimming clock; none: not known yet, so nothing is too old. Everything given
  /// must outlive the compactor.
  RecordCompactor(Store& store, const Options& options,
                  std::function<std::optional<Instant>()> trim_now, Metrics& metrics,
                  OnDone on_done);
  /// Waits for what is under way (at most two deadlines).
  ~RecordCompactor();
  RecordCompactor(const RecordCompactor&) = delete;
  RecordCompactor& operator=(const RecordCompactor&) = delete;

  /// Before the first start(): records go in groups. Null: one by one.
  void set_watched(redis::WatchedRecords* watched) noexcept { watched_ = watched; }

  /// What an oversized record keeps first; nullptr keeps the newest. Applies to records started
  /// later.
  void set_rules(std::shared_ptr<const RuleSet> rules) noexcept;

  [[nodiscard]] bool full() const noexcept { return idle_.empty(); }
  [[nodiscard]] std::size_t in_flight() const noexcept { return jobs_.size() - idle_.size(); }

  /// Starts on a record. Not while full(). `rewrite` puts back even what is compact already, which
  /// gives it an expiry.
  void start(std::string_view key, bool rewrite = false);

  /// Does what has become possible; calls back for each record that is done.
  void tick();
  /// Returns when there is something for tick(), or at `until`.
  void wait(Clock::time_point until);

 private:
  enum class CompactionStage : std::uint8_t { kRead, kExchanged };
  struct CompactionJob final : StoreCompletion {
    void complete(const StoreOutcome& outcome) noexcept override;
    RecordCompactor* owner = nullptr;
    std::string key;
    bool rewrite = false;
    std::uint32_t attempts = 0;
    std::string record;
    std::optional<Instant> expire_at;  // of the record; known in a group only
    std::string desired;
    Instant desired_expiry;
    std::uint32_t repeated_ids = 0;
    CompactionStage stage = CompactionStage::kRead;
    StoreCode code = StoreCode::kOk;
  };
  /// Jobs that are read, and then put back, together.
  struct Group final : redis::WatchedRecords::Completion {
    void on_record(std::size_t index, const StoreOutcome& outcome,
                   std::optional<Instant> expire_at) noexcept override;
    void on_done(StoreCode code) noexcept override;
    RecordCompactor* owner = nullptr;
    std::vector<CompactionJob*> jobs;  // none: not under way
    CompactionStage stage = CompactionStage::kRead;
    StoreCode code = StoreCode::kOk;
  };

  void read(CompactionJob& job);
  /// Whether the record is to be put back as `desired`; otherwise it is finished.
  [[nodiscard]] bool prepare(CompactionJob& job);
  void exchange(CompactionJob& job);
  void exchanged(CompactionJob& job);
  void start_group();
  void end_group();
  void replace_group();
  void part_group();
  void finish(CompactionJob& job, CompactionOutcome outcome);
  [[nodiscard]] Instant expiry() const noexcept;

  Store* store_;
  redis::WatchedRecords* watched_ = nullptr;
  const Options options_;
  std::function<std::optional<Instant>()> trim_now_;
  Metrics* metrics_;
  OnDone on_done_;
  std::shared_ptr<const RuleSet> rules_;
  ledger::Ledger ledger_;

  std::vector<std::unique_ptr<CompactionJob>> jobs_;
  std::vector<CompactionJob*> idle_;
  std::vector<CompactionJob*> working_;   // scratch of tick()
  std::vector<CompactionJob*> gathered_;  // for the next group
  Group group_;
  std::vector<std::string_view> keys_;                  // scratch of start_group()
  std::vector<redis::WatchedRecords::Change> changes_;  // scratch of replace_group()
  Clock::time_point watch_again_at_;                    // after Redis has refused it

  std::mutex mutex_;
  std::condition_variable ready_changed_;
  std::vector<CompactionJob*> ready_;  // guarded by mutex_
  bool group_ended_ = false;           // guarded by mutex_
};

}  // namespace fcap::updater
