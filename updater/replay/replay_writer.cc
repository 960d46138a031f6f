#include "updater/replay/replay_writer.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "ledger/encode.h"
#include "updater/compaction/record_compactor.h"
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
  sum.records_changed += more.records_changed;
  sum.records_unreadable += more.records_unreadable;
}

// Sleeps for `time` or until `stop`.
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
  if (!writing) {
    record.assign(outcome.record);
    foreign = code == StoreCode::kTooLarge ||
              (code == StoreCode::kServerError && outcome.text.starts_with("WRONGTYPE"));
  }
  writer->one_ended(*this, outcome);
}

void ReplayWriter::one_ended(Task& task, const StoreOutcome& outcome) noexcept {
  const bool failed = outcome.code != StoreCode::kOk && outcome.code != StoreCode::kNotFound &&
                      outcome.code != StoreCode::kConflict;
  // Notified under the lock: the writer may be gone as soon as the lock is free.
  const std::lock_guard lock(mutex_);
  if (failed) failure_ = describe_failure(outcome.code, outcome.text);
  ended_.push_back(&task);
  if (ended_.size() == 1) ended_changed_.notify_all();
}

void ReplayWriter::await() {
  ended_now_.clear();
  std::unique_lock lock(mutex_);
  ended_changed_.wait(lock, [this] { return !ended_.empty(); });
  ended_now_.swap(ended_);
}

bool ReplayWriter::write(Coalescer& events, Instant trim_now, const std::stop_token& stop,
                         ReplayCounts& counts) {
  next_user_ = 0;
  failing_ = false;
  failures_ = 0;
  again_.clear();
  idle_.clear();
  for (const auto& task : tasks_) idle_.push_back(task.get());
  while (!stop.stop_requested() || in_flight_ > 0) {
    if (!failing_ && !stop.stop_requested()) read_more(events);
    if (in_flight_ == 0 && !failing_) break;
    if (in_flight_ == 0) {
      pause(stop);
      continue;
    }
    await();
    for (Task* task : ended_now_) go_on(*task, trim_now, counts);
  }
  const bool all = next_user_ == events.users() && again_.empty();
  if (all) events.clear();
  return all;
}

void ReplayWriter::read_more(Coalescer& events) {
  while (!again_.empty()) {
    Task& task = *again_.back();
    again_.pop_back();
    read(task);
  }
  for (; next_user_ < events.users() && in_flight_ < options_.records_in_flight_max; ++next_user_) {
    if (idle_.empty()) idle_.push_back(tasks_.emplace_back(std::make_unique<Task>(*this)).get());
    Task& task = *idle_.back();
    idle_.pop_back();
    events.visit_user(next_user_,
                      [&task](std::string_view key, const std::vector<ledger::Entry>& entries,
                              std::optional<Instant> erased_until) {
                        task.key.assign(key);
                        task.entries.assign(entries.begin(), entries.end());
                        task.erased_until = erased_until;
                      });
    task.maybe_added = false;
    read(task);
  }
}

void ReplayWriter::read(Task& task) {
  ++in_flight_;
  task.writing = false;
  store_->get(task.key, std::chrono::steady_clock::now() + options_.deadline, task);
}

void ReplayWriter::go_on(Task& task, Instant trim_now, ReplayCounts& counts) {
  --in_flight_;
  if (task.writing) {
    was_written(task, counts);
  } else if (task.code == StoreCode::kOk || task.code == StoreCode::kNotFound) {
    was_read(task, trim_now, counts);
  } else if (task.foreign) {
    done(task, {.records_unreadable = 1}, counts);
  } else {
    failed(task, counts);
  }
}

void ReplayWriter::failed(Task& task, ReplayCounts& counts) {
  ++counts.retries;
  failing_ = true;
  again_.push_back(&task);
}

void ReplayWriter::done(Task& task, const ReplayCounts& found, ReplayCounts& counts) {
  add(counts, found);
  failures_ = 0;
  idle_.push_back(&task);
}

void ReplayWriter::pause(const std::stop_token& stop) {
  failing_ = false;
  ++failures_;
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(backoff_.after(failures_));
  if (log_ && (failures_ & (failures_ - 1)) == 0) {
    const std::lock_guard lock(mutex_);
    log_(LogLevel::kWarning,
         fmt::format(
             "reading or writing records in Redis failed ({}); attempt {}, retrying in {} ms",
             failure_, failures_, wait.count()));
  }
  nap(wait, stop);
}

std::string ReplayWriter::missing_of(const Task& task, ReplayCounts& found) {
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
  return tail;
}

void ReplayWriter::was_read(Task& task, Instant trim_now, ReplayCounts& counts) {
  const std::string_view record = task.code == StoreCode::kOk ? task.record : std::string_view{};
  if (ledger_.decode(record) != ledger::DecodeCode::kOk) {
    return done(task, {.records_unreadable = 1}, counts);
  }
  ReplayCounts found;
  const std::string tail = missing_of(task, found);
  if (tail.empty()) return done(task, found, counts);
  // Compact from the start: a replay fills records that may not be written again for weeks. What
  // rules need is known to compaction only, which trims to the size wanted.
  std::string whole(record);
  whole += tail;
  (void)ledger_.decode(whole);  // what was decoded, and what this version encoded
  ledger::CompactOptions compact;
  compact.retention = options_.retention;
  compact.trim_now = trim_now;
  compact.record_bytes_max = untrimmed_bytes_max(options_.record_bytes_max);
  task.desired = ledger::compact(ledger_, whole, compact).record;
  if (task.desired.empty()) return done(task, found, counts);
  task.counts = found;
  const Instant newest =
      std::max(ledger_.newest().value_or(Instant{}), ledger_.erased_before().value_or(Instant{}));
  Store::CompareAndSet change{task.key, std::nullopt, task.desired, newest + options_.retention};
  if (task.code == StoreCode::kOk) change.expected = task.record;
  ++in_flight_;
  task.writing = true;
  store_->compare_and_set(change, std::chrono::steady_clock::now() + options_.deadline, task);
}

void ReplayWriter::was_written(Task& task, ReplayCounts& counts) {
  switch (task.code) {
    case StoreCode::kOk:
      if (task.counts.erasures_added > 0 && log_) {
        log_(LogLevel::kInfo, fmt::format("erased a user's events up to {}",
                                          base::format_instant(*task.erased_until)));
      }
      task.counts.records_changed = 1;
      return done(task, task.counts, counts);
    case StoreCode::kConflict:
      ++counts.conflicts;
      again_.push_back(&task);
      return;
    default:
      task.maybe_added = true;
      return failed(task, counts);
  }
}

}  // namespace fcap::updater
