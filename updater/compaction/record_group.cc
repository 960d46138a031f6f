#include <algorithm>
#include <utility>

#include "updater/compaction/record_compactor.h"

namespace fcap::updater {
namespace {

// If Redis refuses WATCH or MULTI, to which the account may have no right, records go one by one
// for this long.
constexpr std::chrono::minutes kWatchAgainAfter{1};

}  // namespace

void RecordCompactor::Group::on_record(std::size_t index, const StoreOutcome& outcome,
                                       std::optional<Instant> expire_at) noexcept {
  CompactionJob& job = *jobs[index];
  job.code = outcome.code;
  job.record.assign(outcome.record);
  job.expire_at = expire_at;
}

void RecordCompactor::Group::on_done(StoreCode ended) noexcept {
  // Under the lock to the end: once the group has ended, its owner may be gone.
  const std::lock_guard lock(owner->mutex_);
  code = ended;
  owner->group_ended_ = true;
  owner->ready_changed_.notify_one();
}

void RecordCompactor::start_group() {
  if (!group_.jobs.empty() || gathered_.empty()) return;
  group_.jobs.swap(gathered_);
  group_.stage = CompactionStage::kRead;
  keys_.clear();
  for (const CompactionJob* job : group_.jobs) keys_.emplace_back(job->key);
  watched_->read(keys_, Clock::now() + options_.deadline, group_);
}

void RecordCompactor::end_group() {
  if (group_.code == StoreCode::kOk) {
    if (group_.stage == CompactionStage::kRead) return replace_group();
    for (CompactionJob* job : std::exchange(group_.jobs, {}))
      finish(*job, CompactionOutcome::kCompacted);
    return;
  }
  const bool refused = group_.code == StoreCode::kServerError;
  if (refused && group_.stage == CompactionStage::kRead)
    watch_again_at_ = Clock::now() + kWatchAgainAfter;
  if (refused || group_.code == StoreCode::kConflict) return part_group();
  for (CompactionJob* job : std::exchange(group_.jobs, {}))
    finish(*job, CompactionOutcome::kFailed);
}

void RecordCompactor::replace_group() {
  std::erase_if(group_.jobs, [this](CompactionJob* job) { return !prepare(*job); });
  if (group_.jobs.empty()) return;
  group_.stage = CompactionStage::kExchanged;
  changes_.clear();
  for (const CompactionJob* job : group_.jobs) {
    // Redis executes it only if the expiry is still that one.
    changes_.push_back(
        {.key = job->key,
         .desired = job->desired,
         .expire_at = std::max(job->desired_expiry, job->expire_at.value_or(job->desired_expiry))});
  }
  watched_->replace(changes_, Clock::now() + options_.deadline, group_);
}

// Redis has not read or replaced the group as a whole: goes on with its records one by one.
void RecordCompactor::part_group() {
  for (CompactionJob* job : std::exchange(group_.jobs, {})) {
    if (group_.stage == CompactionStage::kRead) {
      read(*job);
    } else {
      exchange(*job);
    }
  }
}

}  // namespace fcap::updater
