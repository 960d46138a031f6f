#include "updater/replay/replay_writer.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "ledger/encode.h"
#include "updater/pipeline/store_failure.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kStopCheck{50};

void add(ReplayCounts& sum, const ReplayCounts& more) {
  sum.added += more.added;
  sum.already_there += more.already_there;
  sum.erased += more.erased;
  sum.trimmed += more.trimmed;
  sum.erasures_added += more.erasures_added;
  sum.erasures_already_there += more.erasures_already_there;
}

/// Sleeps for `time` or until `stop`.
void nap(std::chrono::milliseconds time, const std::stop_token& stop) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!stop.stop_requested() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::min(kStopCheck, time));
  }
}

}  // namespace

ReplayWriter::ReplayWriter(Store& store, const ReplayWriteOptions& options, LogCallback log)
    : store_(&store),
      options_(options),
      log_(std::move(log)),
      backoff_(options.backoff_min, options.backoff_max, base::seeded_jitter(options.jitter_seed)) {
}

void ReplayWriter::Task::complete(const StoreOutcome& outcome) noexcept {
  code = outcome.code;
  if (!writing) record.assign(outcome.record);
  writer->one_ended(outcome);
}

void ReplayWriter::one_ended(const StoreOutcome& outcome) noexcept {
  const std::lock_guard lock(mutex_);
  const bool failed = outcome.code != StoreCode::kOk && outcome.code != StoreCode::kNotFound &&
                      outcome.code != StoreCode::kConflict;
  if (failed) failure_ = describe_failure(outcome.code, outcome.text);
  if (--outstanding_ == 0) ended_.notify_all();
}

void ReplayWriter::start(std::size_t operations) {
  const std::lock_guard lock(mutex_);
  outstanding_ = operations;
}

void ReplayWriter::await() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return outstanding_ == 0; });
}

void ReplayWriter::prepare(Coalescer& events) {
  used_tasks_ = 0;
  if (tasks_.size() < events.users()) tasks_ = std::vector<Task>(events.users());
  pending_.clear();
  events.for_each_user([this](std::string_view key, const std::vector<ledger::Entry>& entries,
                              std::optional<Instant> erased_until) {
    Task& task = tasks_[used_tasks_++];
    task.writer = this;
    task.key.assign(key);
    task.entries.assign(entries.begin(), entries.end());
    task.erased_until = erased_until;
    task.done = false;
    task.maybe_added = false;
    pending_.push_back(&task);
  });
  events.clear();
}

bool ReplayWriter::write(Coalescer& events, Instant trim_now, const std::stop_token& stop,
                         ReplayCounts& counts) {
  prepare(events);
  std::uint32_t failures = 0;
  while (!pending_.empty()) {
    if (stop.stop_requested()) return false;
    bool failing = false;
    for (std::size_t i = 0; i < pending_.size() && !failing; i += options_.records_in_flight_max) {
      const std::size_t size = std::min(options_.records_in_flight_max, pending_.size() - i);
      run_chunk(std::span(pending_).subspan(i, size), trim_now, counts, failing);
    }
    std::erase_if(pending_, [](const Task* task) { return task->done; });
    failures = failing ? failures + 1 : 0;
    if (failures == 0) continue;
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(backoff_.after(failures));
    if (log_ && (failures & (failures - 1)) == 0) {
      log_(LogLevel::kWarning,
           fmt::format("Redis does not answer as it should ({}); attempt {}, trying again in {} ms",
                       failure_, failures, wait.count()));
    }
    nap(wait, stop);
  }
  return true;
}

void ReplayWriter::run_chunk(std::span<Task*> chunk, Instant trim_now, ReplayCounts& counts,
                             bool& failing) {
  start(chunk.size());
  const auto read_by = std::chrono::steady_clock::now() + options_.deadline;
  for (Task* task : chunk) {
    task->writing = false;
    store_->get(task->key, read_by, *task);
  }
  await();
  std::size_t writes = 0;
  for (Task* task : chunk) {
    if (task->code != StoreCode::kOk && task->code != StoreCode::kNotFound) {
      ++counts.retries;
      failing = true;
      continue;
    }
    judge(*task, trim_now, counts);
    if (task->writing) ++writes;
  }
  start(writes);
  const auto written_by = std::chrono::steady_clock::now() + options_.deadline;
  for (Task* task : chunk) {
    if (!task->writing) continue;
    Store::CompareAndSet change{task->key, std::nullopt, task->desired, task->expire_at};
    if (task->code == StoreCode::kOk) change.expected = task->record;
    store_->compare_and_set(change, written_by, *task);
  }
  await();
  for (Task* task : chunk) {
    if (task->writing) conclude(*task, counts, failing);
  }
}

void ReplayWriter::judge(Task& task, Instant trim_now, ReplayCounts& counts) {
  const std::string_view record = task.code == StoreCode::kOk ? task.record : std::string_view{};
  if (ledger_.decode(record) != ledger::DecodeCode::kOk) {
    ++counts.records_unreadable;
    task.done = true;
    return;
  }
  ReplayCounts found;
  std::vector<ledger::Entry> missing;
  for (const ledger::Entry& entry : task.entries) {
    switch (presence_of(entry, ledger_)) {
      case Presence::kThere:
        ++(task.maybe_added ? found.added : found.already_there);
        break;
      case Presence::kMissing:
        ++found.added;
        missing.push_back(entry);
        ledger_.merge(entry);  // so that its copy in this batch is found there
        break;
      case Presence::kErased:
        ++found.erased;
        break;
      case Presence::kTrimmed:
        ++found.trimmed;
        break;
    }
  }
  std::string tail;
  if (!missing.empty()) ledger::append_entries(missing, tail);
  if (task.erased_until) {
    const bool there = ledger_.erased_before() && *ledger_.erased_before() >= *task.erased_until;
    ++(there ? found.erasures_already_there : found.erasures_added);
    if (!there) ledger::append_erased_before(*task.erased_until, tail);
  }
  if (tail.empty()) {
    add(counts, found);
    task.done = true;
    return;
  }
  // Compact from the start: a replay fills records that may not be written again for weeks. Nothing
  // is trimmed for size here; compaction does that, because it knows what rules need.
  std::string whole(record);
  whole += tail;
  (void)ledger_.decode(whole);  // what was decoded, and what this version encoded
  ledger::CompactOptions compact;
  compact.retention = options_.retention;
  compact.trim_now = trim_now;
  compact.record_bytes_max = std::numeric_limits<std::size_t>::max();
  task.desired = ledger::compact(ledger_, whole, compact).record;
  const Instant newest =
      std::max(ledger_.newest().value_or(Instant{}), ledger_.erased_before().value_or(Instant{}));
  task.expire_at = newest + options_.retention;
  task.counts = found;
  task.writing = !task.desired.empty();
  if (!task.writing) {
    add(counts, found);
    task.done = true;
  }
}

void ReplayWriter::conclude(Task& task, ReplayCounts& counts, bool& failing) {
  switch (task.code) {
    case StoreCode::kOk:
      add(counts, task.counts);
      ++counts.records_changed;
      if (task.counts.erasures_added > 0 && log_) {
        log_(LogLevel::kInfo, fmt::format("erased: everything of a user up to {}",
                                          base::format_instant(*task.erased_until)));
      }
      task.done = true;
      return;
    case StoreCode::kConflict:
      ++counts.conflicts;
      return;
    default:
      ++counts.retries;
      failing = true;
      task.maybe_added = true;
      return;
  }
}

}  // namespace fcap::updater
