#include "updater/compaction/record_compactor.h"

#include <algorithm>
#include <utility>

#include "ledger/encode.h"
#include "rules/keep_needed.h"

namespace fcap::updater {

RecordCompactor::RecordCompactor(Store& store, const Options& options,
                                 std::function<std::optional<Instant>()> trim_now, Metrics& metrics,
                                 OnDone on_done)
    : store_(&store),
      options_(options),
      trim_now_(std::move(trim_now)),
      metrics_(&metrics),
      on_done_(std::move(on_done)) {
  for (std::size_t i = 0; i < options_.in_flight_max; ++i) {
    jobs_.push_back(std::make_unique<CompactionJob>());
    jobs_.back()->owner = this;
    idle_.push_back(jobs_.back().get());
  }
  group_.owner = this;
}

RecordCompactor::~RecordCompactor() {
  on_done_ = nullptr;
  const auto give_back = [this](std::vector<CompactionJob*>& jobs) {
    idle_.insert(idle_.end(), jobs.begin(), jobs.end());
    jobs.clear();
  };
  give_back(gathered_);
  while (in_flight() > 0) {
    wait(Clock::now() + options_.deadline);
    const std::lock_guard lock(mutex_);
    give_back(ready_);
    if (std::exchange(group_ended_, false)) give_back(group_.jobs);
  }
}

void RecordCompactor::set_rules(std::shared_ptr<const RuleSet> rules) noexcept {
  rules_ = std::move(rules);
}

void RecordCompactor::CompactionJob::complete(const StoreOutcome& outcome) noexcept {
  code = outcome.code;
  if (stage == CompactionStage::kRead) record.assign(outcome.record);
  // Under the lock to the end: once the job is ready, its owner may be gone.
  const std::lock_guard lock(owner->mutex_);
  owner->ready_.push_back(this);
  owner->ready_changed_.notify_one();
}

void RecordCompactor::start(std::string_view key, bool rewrite) {
  CompactionJob& job = *idle_.back();
  idle_.pop_back();
  job.key.assign(key);
  job.rewrite = rewrite;
  job.attempts = 0;
  if (watched_ != nullptr && Clock::now() >= watch_again_at_) {
    gathered_.push_back(&job);
  } else {
    read(job);
  }
}

void RecordCompactor::read(CompactionJob& job) {
  ++job.attempts;
  job.stage = CompactionStage::kRead;
  store_->get(job.key, Clock::now() + options_.deadline, job);
}

void RecordCompactor::tick() {
  bool group_ended = false;
  {
    const std::lock_guard lock(mutex_);
    working_.swap(ready_);
    group_ended = std::exchange(group_ended_, false);
  }
  for (CompactionJob* job : working_) {
    if (job->stage == CompactionStage::kExchanged) {
      exchanged(*job);
    } else if (prepare(*job)) {
      exchange(*job);
    }
  }
  working_.clear();
  if (group_ended) end_group();
  start_group();
}

void RecordCompactor::wait(Clock::time_point until) {
  start_group();
  std::unique_lock lock(mutex_);
  ready_changed_.wait_until(lock, until, [this] { return !ready_.empty() || group_ended_; });
}

Instant RecordCompactor::expiry() const noexcept {
  // The record expires one retention after the newest thing that it says. The store keeps a later
  // expiry.
  Instant newest =
      std::max(ledger_.newest().value_or(Instant{}), ledger_.erased_before().value_or(Instant{}));
  if (newest == Instant{}) newest = trim_now_().value_or(Instant{});
  return newest + options_.retention;
}

bool RecordCompactor::prepare(CompactionJob& job) {
  const auto over = [this, &job](CompactionOutcome outcome) {
    finish(job, outcome);
    return false;
  };
  if (job.code == StoreCode::kNotFound) return over(CompactionOutcome::kMissing);
  if (job.code != StoreCode::kOk) return over(CompactionOutcome::kFailed);
  if (ledger_.decode(job.record) != ledger::DecodeCode::kOk)
    return over(CompactionOutcome::kUndecodable);
  metrics_->unknown_frames.add(ledger_.unknown_frames());

  ledger::CompactOptions options;
  options.retention = options_.retention;
  options.trim_now = trim_now_().value_or(Instant{});
  const bool trim_size = rules_ != nullptr || options_.trim_without_rules;
  // While rules have not come, nobody knows what must stay, so more is kept; but not without a
  // bound.
  options.record_bytes_max =
      trim_size ? options_.record_bytes_max : untrimmed_bytes_max(options_.record_bytes_max);
  std::optional<rules::KeepNeeded> keep;
  if (rules_) options.keep = &keep.emplace(rules_);
  ledger::Compacted compacted = ledger::compact(ledger_, job.record, options);
  if (compacted.record == job.record && !job.rewrite) return over(CompactionOutcome::kUnneeded);
  metrics_->entries_expired.add(compacted.expired_entries);
  metrics_->entries_dropped.add(compacted.dropped_entries);

  job.desired = std::move(compacted.record);
  job.desired_expiry = expiry();
  job.repeated_ids = ledger_.repeated_ids();
  return true;
}

void RecordCompactor::exchange(CompactionJob& job) {
  job.stage = CompactionStage::kExchanged;
  // A record means the union of its frames, so appends that arrive meanwhile may follow the
  // compacted part. Otherwise a user who is written to all the time would never be compacted.
  store_->compare_and_set({.key = job.key,
                           .expected = job.record,
                           .desired = job.desired,
                           .expire_at = job.desired_expiry,
                           .keep_appended = true},
                          Clock::now() + options_.deadline, job);
}

void RecordCompactor::exchanged(CompactionJob& job) {
  if (job.code == StoreCode::kOk) return finish(job, CompactionOutcome::kCompacted);
  if (job.code != StoreCode::kConflict) return finish(job, CompactionOutcome::kFailed);
  metrics_->compaction_conflicts.add();
  if (job.attempts >= options_.attempts_max) return finish(job, CompactionOutcome::kConflict);
  read(job);
}

void RecordCompactor::finish(CompactionJob& job, CompactionOutcome outcome) {
  const bool compacted = outcome == CompactionOutcome::kCompacted;
  const Done done{.key = job.key,
                  .rewrite = job.rewrite,
                  .outcome = outcome,
                  .bytes_before = job.record.size(),
                  .bytes_after = compacted ? job.desired.size() : job.record.size()};
  switch (outcome) {
    case CompactionOutcome::kCompacted:
      metrics_->compactions.add();
      metrics_->repeated_ids.add(job.repeated_ids);
      if (done.bytes_before > done.bytes_after) {
        metrics_->compaction_bytes_saved.add(done.bytes_before - done.bytes_after);
      }
      break;
    case CompactionOutcome::kUnneeded:
    case CompactionOutcome::kMissing:
      metrics_->compaction_unneeded.add();
      break;
    case CompactionOutcome::kUndecodable:
      metrics_->undecodable_records.add();
      break;
    case CompactionOutcome::kFailed:
      metrics_->compaction_failures.add();
      break;
    case CompactionOutcome::kConflict:
      break;  // each one was counted
  }
  if (on_done_) on_done_(done);
  idle_.push_back(&job);
}

}  // namespace fcap::updater
