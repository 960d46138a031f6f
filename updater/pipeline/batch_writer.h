#pragma once

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
#include <unordered_set>
#include <utility>
#include <vector>

#include <fcap/log.h>
#include <fcap/store.h>

#include "base/backoff.h"
#include "updater/compaction/compaction_hook.h"
#include "updater/metrics/metrics.h"
#include "updater/pipeline/batch.h"
#include "updater/pipeline/flight_window.h"
#include "updater/pipeline/known_records.h"

namespace fcap::updater {

struct WriteOptions {
  /// How long one attempt may take.
  std::chrono::milliseconds deadline{2000};
  /// Between the attempts of a batch.
  std::chrono::milliseconds backoff_min{20};
  std::chrono::milliseconds backoff_max{2000};
  std::size_t batches_in_flight_max = 4;
  /// The most writes in flight. The actual number is adjusted so that Redis does not take longer
  /// than the deadline for them.
  std::size_t writes_in_flight_max = 160'000;
  /// How many writes in flight may fill gaps: this many, but never more than a fifth of what may be
  /// in flight at present, so that live events seldom wait for them. A batch of a gap that is the
  /// only one is not held up.
  std::size_t gap_writes_in_flight_max = 1'000;
  std::size_t bytes_in_flight_max = std::size_t{32} * 1024 * 1024;
  std::uint64_t jitter_seed = 1;
  /// Records expire this much later than they must, so that the next events of a session need no
  /// new expiry.
  std::chrono::milliseconds expiry_ahead = std::chrono::hours{1};
  /// For how many records the length is remembered, at 16 bytes each.
  std::size_t known_records_max = std::size_t{1} << 20U;
};

/// Writes batches to a store, several at a time, and retries failed writes until they succeed. It
/// never gives a batch up: whether to wait is its caller's choice. A write that the server refuses
/// because of its key (WRONGTYPE, for example) is given up after a few attempts; the finished batch
/// names it (Batch::refused()).
///
/// Thread safety: one thread (the main loop's) calls it; completions arrive from anywhere.
class BatchWriter final : public RoundListener {
 public:
  using Clock = std::chrono::steady_clock;

  /// Grows with each connection to the store made or lost.
  using Epoch = std::function<std::uint64_t()>;

  /// `hook` may be null. Without an `epoch` nothing is remembered of records, and each write sets
  /// the expiry. All arguments must outlive the writer.
  BatchWriter(Store& store, CompactionHook* hook, const WriteOptions& options, Metrics& metrics,
              LogCallback log, Epoch epoch = {});
  /// Waits for pending operations (at most until their deadline); writes that are undone then stay
  /// undone.
  ~BatchWriter();
  BatchWriter(const BatchWriter&) = delete;
  BatchWriter& operator=(const BatchWriter&) = delete;

  /// An empty batch to fill; it stays the writer's.
  Batch& take();
  /// Starts writing a batch that was taken.
  void submit(Batch& batch);
  /// Returns a batch that was taken and will not be written.
  void discard(Batch& batch);

  /// Starts the rounds that are due and returns the batches that are done. The caller gives each
  /// one back by release() after reading it.
  void tick(Clock::time_point now, std::vector<Batch*>& done);
  void release(Batch& batch);

  /// Returns when a round has ended since the last tick(), or at `until`.
  void wait(Clock::time_point until);

  /// Records may have changed since they were written, because Redis has lost data, or because
  /// partitions were given away and others have written them: no expiry is assumed to be known.
  void forget_known() noexcept;

  /// Whether another batch would be above the bounds.
  [[nodiscard]] bool full() const noexcept;
  /// How many messages the next batch should have at most.
  [[nodiscard]] std::size_t room() const noexcept;
  /// How many more writes for gaps may be in flight: few, so that live events seldom wait.
  [[nodiscard]] std::size_t gap_room() const noexcept;
  /// Whether a batch of so many may be submitted: it is within gap_room(), or the only one.
  [[nodiscard]] bool gap_fits(std::size_t writes) const noexcept {
    return gaps_in_flight_ == 0 || writes <= gap_room();
  }
  /// Says which batches no longer count (after a rewind or a rebalance): they are not retried,
  /// since their messages are read again. Only a batch that owes expiries is: its messages may be
  /// those of a log that no longer exists, and then nothing else would make its records expire.
  void set_passed(std::function<bool(const Batch&)> passed) { passed_ = std::move(passed); }
  /// In a cluster: says whether the shard of a key is away. Writes that fail there are given up
  /// (Batch::epoch_of()), so that the others of their batch are done.
  void set_away(std::function<bool(std::string_view key)> away) { away_ = std::move(away); }
  [[nodiscard]] std::size_t batches_in_flight() const noexcept { return in_flight_; }
  /// Whether some batch is being retried.
  [[nodiscard]] bool failing() const noexcept { return retrying_ > 0; }

  /// While failing(): an append that failed, and why.
  [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

  void round_over(Batch& batch) noexcept override;

 private:
  void start_round(Batch& batch);
  void check_known(Batch& batch);
  void give_up_refused(Batch& batch);
  void land(const Batch& batch) noexcept;
  void schedule_retry(Batch& batch, Clock::time_point now);
  void count_done(const Batch& batch);
  void tell_hook(const Batch& batch);
  void log_erasures(const Batch& batch) const;
  void publish() noexcept;

  Store* store_;
  CompactionHook* hook_;
  WriteOptions options_;
  Metrics* metrics_;
  LogCallback log_;
  base::Backoff backoff_;
  Epoch epoch_;
  std::optional<KnownRecords> known_;
  std::uint64_t known_epoch_ = 0;

  std::vector<std::unique_ptr<Batch>> all_;
  std::vector<Batch*> idle_;
  std::vector<Batch*> waiting_;                   // for their next round
  std::vector<Batch*> ended_;                     // scratch of tick()
  std::vector<CompactionHook::Written> written_;  // scratch of count_done()
  std::size_t in_flight_ = 0;
  std::size_t bytes_in_flight_ = 0;
  std::size_t writes_in_flight_ = 0;
  // How many of these are for gaps.
  std::size_t gaps_in_flight_ = 0;
  std::size_t gap_writes_in_flight_ = 0;
  FlightWindow window_;
  std::function<bool(const Batch&)> passed_;
  std::function<bool(std::string_view key)> away_;
  std::size_t retrying_ = 0;  // in flight and failed at least once
  std::string trouble_;
  bool some_succeeded_ = false;                       // some append, on this connection
  std::unordered_set<std::uint64_t> refused_before_;  // users; bounded

  std::mutex mutex_;
  std::condition_variable ended_changed_;
  std::vector<Batch*> rounds_ended_;  // guarded by mutex_
  std::size_t rounds_running_ = 0;    // guarded by mutex_
};

}  // namespace fcap::updater
