#include "updater/pipeline/batch_writer.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"

namespace fcap::updater {

BatchWriter::BatchWriter(Store& store, CompactionHook* hook, const WriteOptions& options,
                         Metrics& metrics, LogCallback log, Epoch epoch)
    : store_(&store),
      hook_(hook),
      options_(options),
      metrics_(&metrics),
      log_(std::move(log)),
      backoff_(options.backoff_min, options.backoff_max, base::seeded_jitter(options.jitter_seed)),
      epoch_(std::move(epoch)),
      window_(options.deadline, options.writes_in_flight_max) {
  if (epoch_) known_.emplace(options.known_records_max);
}

BatchWriter::~BatchWriter() {
  std::unique_lock lock(mutex_);
  ended_changed_.wait(lock, [this] { return rounds_running_ == 0; });
}

Batch& BatchWriter::take() {
  if (idle_.empty()) {
    all_.push_back(std::make_unique<Batch>(*this));
    idle_.push_back(all_.back().get());
  }
  Batch& batch = *idle_.back();
  idle_.pop_back();
  return batch;
}

void BatchWriter::discard(Batch& batch) {
  batch.clear();
  idle_.push_back(&batch);
}

void BatchWriter::start_round(Batch& batch) {
  {
    const std::lock_guard lock(mutex_);
    ++rounds_running_;
  }
  const std::uint64_t epoch = epoch_ ? epoch_() : 0;
  const bool same_connection = batch.epoch == epoch;
  batch.epoch = epoch;
  if (known_) {
    // After a reconnection, the server may have lost an expiry although it kept the record.
    if (batch.epoch != known_epoch_) {
      known_->clear();
      refused_before_.clear();
      some_succeeded_ = false;
      window_.restart(Clock::now());
    }
    known_epoch_ = batch.epoch;
  }
  batch.start_round(*store_, {.deadline = Clock::now() + options_.deadline,
                              .expiry_ahead = options_.expiry_ahead,
                              .known = known_ ? &*known_ : nullptr,
                              .same_connection = same_connection});
}

void BatchWriter::submit(Batch& batch) {
  ++in_flight_;
  bytes_in_flight_ += batch.weight_bytes();
  writes_in_flight_ += batch.writes.size();
  if (batch.gap_ticket != 0) {
    ++gaps_in_flight_;
    gap_writes_in_flight_ += batch.writes.size();
  }
  batch.submitted_at = Clock::now();
  start_round(batch);
  publish();
}

void BatchWriter::round_over(Batch& batch) noexcept {
  // Notified under the lock: the destructor may run as soon as the lock is free.
  const std::lock_guard lock(mutex_);
  rounds_ended_.push_back(&batch);
  --rounds_running_;
  ended_changed_.notify_all();
}

void BatchWriter::wait(Clock::time_point until) {
  std::unique_lock lock(mutex_);
  ended_changed_.wait_until(lock, until, [this] { return !rounds_ended_.empty(); });
}

void BatchWriter::tick(Clock::time_point now, std::vector<Batch*>& done) {
  ended_.clear();
  {
    const std::lock_guard lock(mutex_);
    ended_.swap(rounds_ended_);
  }
  for (Batch* batch : ended_) {
    check_known(*batch);
    batch->close_round();
    give_up_refused(*batch);
    const bool some_away = away_ && batch->undone() > 0 && batch->give_up_away(away_) > 0;
    if (some_away) batch->close_round();
    if (batch->undone() > 0) {
      schedule_retry(*batch, now);
      continue;
    }
    // How long it took says nothing about the shards that are well.
    if (batch->attempts == 1 && !some_away) window_.came_back(batch->submitted_at, now);
    land(*batch);
    count_done(*batch);
    done.push_back(batch);
  }
  ended_.clear();
  for (std::size_t i = 0; i < waiting_.size();) {
    Batch* batch = waiting_[i];
    if (batch->retry_at > now) {
      ++i;
      continue;
    }
    waiting_[i] = waiting_.back();
    waiting_.pop_back();
    if (passed_ && !batch->owes_expiry() && passed_(*batch)) {
      land(*batch);
      release(*batch);
    } else {
      start_round(*batch);
    }
  }
  publish();
}

void BatchWriter::land(const Batch& batch) noexcept {
  if (batch.attempts > 1 || batch.undone() > 0) --retrying_;
  --in_flight_;
  bytes_in_flight_ -= batch.weight_bytes();
  writes_in_flight_ -= batch.writes.size();
  if (batch.gap_ticket == 0) return;
  --gaps_in_flight_;
  gap_writes_in_flight_ -= batch.writes.size();
}

std::size_t BatchWriter::room() const noexcept {
  // Half of it, so that Redis has the next batch while this one comes back.
  return std::max<std::size_t>(window_.writes() / 2, 1);
}

std::size_t BatchWriter::gap_room() const noexcept {
  constexpr std::size_t kPart = 5;
  const std::size_t most = std::min(window_.writes() / kPart, options_.gap_writes_in_flight_max);
  return most - std::min(most, gap_writes_in_flight_);
}

void BatchWriter::check_known(Batch& batch) {
  if (!known_) return;
  // What was known when the round began holds for that connection only.
  const bool same_connection = batch.epoch == known_epoch_ && batch.epoch == epoch_();
  if (!same_connection && batch.attempts == 1) batch.distrust_known();
  if (same_connection) batch.learn(*known_, options_.expiry_ahead);
  batch.forget_undone(*known_);
}

void BatchWriter::give_up_refused(Batch& batch) {
  // A write that was refused so often is given up. Retrying it further would hold up every other
  // event of its batch, and offsets behind it would never be committed.
  constexpr std::uint32_t kAttempts = 3;
  constexpr std::size_t kRememberedMax = 10'000;
  some_succeeded_ = some_succeeded_ || batch.failed_writes() < batch.writes.size();
  if (!batch.has_refusals()) return;
  const auto known = [&](std::size_t i) { return refused_before_.contains(batch.writes.hash(i)); };
  if (batch.attempts < kAttempts && !batch.all_undone(known)) return;
  batch.give_up_refused(some_succeeded_);
  batch.close_round();
  for (const Batch::Refused& refused : batch.refused()) {
    if (refused_before_.size() >= kRememberedMax) refused_before_.clear();
    const bool is_new = refused_before_.insert(batch.writes.hash(refused.write)).second;
    if (!is_new || !log_) continue;
    // Without the key, which names a user: the dead letter has it.
    const kafka::PartitionOffset& at = batch.positions[refused.write];
    log_(LogLevel::kError,
         fmt::format("partition {}, offset {}: Redis refuses the append to the user's key; the "
                     "events become a dead letter: {}",
                     at.partition, at.offset, refused.why));
  }
}

void BatchWriter::schedule_retry(Batch& batch, Clock::time_point now) {
  if (batch.attempts == 1) ++retrying_;
  if (batch.timed_out()) window_.timed_out(batch.submitted_at, now);
  trouble_ = batch.sample_failure();
  metrics_->write_retries.add(batch.failed_writes());
  const auto wait = backoff_.after(batch.attempts);
  batch.retry_at = now + wait;
  waiting_.push_back(&batch);
  // The first few attempts, then each power of two: an outage of an hour fills no log.
  if (log_ && (batch.attempts & (batch.attempts - 1)) == 0) {
    log_(LogLevel::kWarning,
         fmt::format("attempt {}: {} of {} appends failed ({}); retrying in {} ms", batch.attempts,
                     batch.failed_writes(), batch.writes.size(), trouble_,
                     std::chrono::ceil<std::chrono::milliseconds>(wait).count()));
  }
}

void BatchWriter::count_done(const Batch& batch) {
  if (hook_ != nullptr) tell_hook(batch);
  metrics_->batches.add();
  metrics_->records_written.add(batch.writes.size());
  metrics_->record_bytes_written.add(batch.writes.record_bytes());
  metrics_->events_written.add(batch.events);
  metrics_->erasures.add(batch.erasures.size());
  log_erasures(batch);
  const auto since_submitted = Clock::now() - batch.submitted_at;
  metrics_->write_duration.observe(
      std::chrono::duration_cast<std::chrono::microseconds>(since_submitted));
}

void BatchWriter::tell_hook(const Batch& batch) {
  written_.clear();
  for (std::size_t i = 0; i < batch.writes.size(); ++i) {
    if (batch.length_after(i) == 0) continue;  // refused
    written_.push_back({batch.writes.key(i), batch.length_after(i), batch.writes.bytes(i).size()});
  }
  hook_->on_users_written(written_);
}

void BatchWriter::log_erasures(const Batch& batch) const {
  if (!log_) return;
  for (const Batch::Erasure& erasure : batch.erasures) {
    log_(LogLevel::kInfo,
         // Without the id: a log must not name a user who wanted to be forgotten.
         fmt::format(
             "erased a user's events up to {}, as the message at partition {}, offset {} requests",
             base::format_instant(erasure.until), erasure.partition, erasure.offset));
  }
}

void BatchWriter::release(Batch& batch) {
  discard(batch);
}

void BatchWriter::forget_known() noexcept {
  if (known_) known_->clear();
}

bool BatchWriter::full() const noexcept {
  return in_flight_ - gaps_in_flight_ >= options_.batches_in_flight_max ||
         writes_in_flight_ >= window_.writes() || bytes_in_flight_ >= options_.bytes_in_flight_max;
}

void BatchWriter::publish() noexcept {
  metrics_->in_flight_bytes.set(static_cast<std::int64_t>(bytes_in_flight_));
  if (hook_ == nullptr) return;
  // Live batches take half of the window each. So if half of it or more is in flight, others wait,
  // and compaction must not add to that. While writes fail, it must go on: the memory that it frees
  // may be what they need.
  const bool waits = writes_in_flight_ >= window_.writes() / 2;
  hook_->set_writes_wait(waits && window_.reduced() && !failing());
}

}  // namespace fcap::updater
