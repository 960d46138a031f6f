#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>

#include <fcap/rule_set.h>
#include <fcap/store.h>
#include <fcap/time.h>

#include "updater/compaction/compaction_hook.h"
#include "updater/compaction/record_compactor.h"
#include "updater/compaction/written_users.h"
#include "updater/metrics/metrics.h"

namespace fcap::updater {

/// Keeps the records of active users short and leaves those of quiet users compact: decides when a
/// record is compacted, and does so on a thread of its own, beside the write path.
///
/// Thread safety: on_user_written() and set_rules() from any thread.
class Compactor final : public CompactionHook {
 public:
  using Clock = std::chrono::steady_clock;

  struct Options {
    WrittenUsers::Limits users = {};
    RecordCompactor::Options records = {};
    std::chrono::milliseconds quiet_after{60'000};
    /// How long stop() goes on with what is remembered; zero: not at all.
    std::chrono::milliseconds drain_timeout{5'000};
  };

  Compactor(Store& store, const Options& options, std::function<std::optional<Instant>()> trim_now,
            Metrics& metrics);
  /// stop(), if it has not been called.
  ~Compactor();
  Compactor(const Compactor&) = delete;
  Compactor& operator=(const Compactor&) = delete;

  void on_user_written(std::string_view key, std::size_t length_after_bytes,
                       std::size_t appended_bytes) noexcept override;
  void on_users_written(std::span<const Written> written) noexcept override;
  void set_writes_wait(bool wait) noexcept override;
  void set_rules(std::shared_ptr<const RuleSet> rules);

  /// Before start(): as RecordCompactor::set_watched().
  void set_watched(redis::WatchedRecords* watched) noexcept { records_.set_watched(watched); }

  void start();
  /// Compacts what is remembered, for at most drain_timeout, and joins the thread.
  void stop();

 private:
  void work();
  void drain(Clock::time_point until);
  /// Starts on what is due, and on what has been quiet since `quiet_until`.
  void start_due(Clock::time_point quiet_until);
  void note(const Written& written, std::uint64_t hash, Clock::time_point now);
  /// The key of a record to compact now; false: none is due, or writes come first.
  bool next_due(Clock::time_point quiet_until, std::string& key);
  void done(const RecordCompactor::Done& record);
  void take_rules();

  const Options options_;
  Metrics* metrics_;
  RecordCompactor records_;

  std::mutex mutex_;
  WrittenUsers users_;                    // guarded by mutex_
  std::deque<std::string> due_;           // guarded by mutex_; at most users_max
  std::shared_ptr<const RuleSet> rules_;  // guarded by mutex_
  bool rules_changed_ = false;            // guarded by mutex_
  bool writes_wait_ = false;              // guarded by mutex_
  std::size_t written_ = 0;               // guarded by mutex_; records, while writes wait
  bool stopping_ = false;                 // guarded by mutex_
  std::condition_variable stopping_changed_;
  std::thread thread_;
  // The thread's: what is being compacted, and whether it has become due again meanwhile.
  std::unordered_map<std::string, bool> running_;
  std::string key_;
};

}  // namespace fcap::updater
