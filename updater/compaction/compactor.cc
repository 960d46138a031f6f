#include "updater/compaction/compactor.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fcap::updater {
namespace {

// How often the table is looked at when nothing is under way.
constexpr std::chrono::milliseconds kTurn{50};

// While writes wait for a slow Redis, one record is compacted per this many that are written. It
// costs Redis as much as 15 to 20 appends if it goes by itself, and less in a group, so that
// compaction takes about a twentieth of its time.
constexpr std::size_t kWrittenPerCompaction = 300;
constexpr std::size_t kWrittenMax = 20 * kWrittenPerCompaction;  // that are saved up

}  // namespace

Compactor::Compactor(Store& store, const Options& options,
                     std::function<std::optional<Instant>()> trim_now, Metrics& metrics)
    : options_(options),
      metrics_(&metrics),
      records_(store, options.records, std::move(trim_now), metrics,
               [this](const RecordCompactor::Done& record) { done(record); }),
      users_(options.users) {}

Compactor::~Compactor() {
  stop();
}

void Compactor::start() {
  thread_ = std::thread([this] { work(); });
}

void Compactor::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stopping_changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Compactor::on_user_written(std::string_view key, std::size_t length_after_bytes,
                                std::size_t appended_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  note({key, length_after_bytes, appended_bytes}, WrittenUsers::hash_of(key), Clock::now());
}

void Compactor::on_users_written(std::span<const Written> written) noexcept {
  const Clock::time_point now = Clock::now();
  std::array<std::uint64_t, 64> hashes;
  // In pieces: what was prefetched must still be in the cache when note() reads it, and the lock
  // must be free in between for the thread that compacts.
  while (!written.empty()) {
    const auto some = written.first(std::min(written.size(), hashes.size()));
    written = written.subspan(some.size());
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < some.size(); ++i) {
      hashes[i] = WrittenUsers::hash_of(some[i].key);
      users_.prefetch_bucket(hashes[i]);
    }
    for (std::size_t i = 0; i < some.size(); ++i) users_.prefetch_place(hashes[i]);
    for (std::size_t i = 0; i < some.size(); ++i) users_.prefetch_neighbours(hashes[i]);
    for (std::size_t i = 0; i < some.size(); ++i) note(some[i], hashes[i], now);
    if (writes_wait_) written_ = std::min(written_ + some.size(), kWrittenMax);
  }
}

// The lock is held.
void Compactor::note(const Written& written, std::uint64_t hash, Clock::time_point now) {
  switch (users_.note(written.key, hash, written.length_after_bytes, written.appended_bytes, now)) {
    case WrittenUsers::NoteOutcome::kRemembered:
      break;
    case WrittenUsers::NoteOutcome::kDue:
      if (due_.size() < options_.users.users_max) {
        due_.emplace_back(written.key);
      } else {
        metrics_->queue_overflows.add();
      }
      break;
    case WrittenUsers::NoteOutcome::kFull:
      metrics_->queue_overflows.add();
      break;
  }
}

void Compactor::set_writes_wait(bool wait) noexcept {
  const std::lock_guard lock(mutex_);
  writes_wait_ = wait;
  if (!wait) written_ = 0;
}

void Compactor::set_rules(std::shared_ptr<const RuleSet> rules) {
  const std::lock_guard lock(mutex_);
  rules_ = std::move(rules);
  rules_changed_ = true;
}

void Compactor::take_rules() {
  const std::lock_guard lock(mutex_);
  if (std::exchange(rules_changed_, false)) records_.set_rules(rules_);
}

bool Compactor::next_due(Clock::time_point quiet_until, std::string& key) {
  const std::lock_guard lock(mutex_);
  metrics_->queued_users.set(static_cast<std::int64_t>(users_.size() + due_.size()));
  if (writes_wait_ && written_ < kWrittenPerCompaction) return false;
  if (!due_.empty()) {
    key = std::move(due_.front());
    due_.pop_front();
  } else if (!users_.take_quiet(quiet_until, key)) {
    return false;
  }
  if (writes_wait_) written_ -= kWrittenPerCompaction;
  return true;
}

void Compactor::start_due(Clock::time_point quiet_until) {
  records_.tick();
  while (!records_.full() && next_due(quiet_until, key_)) {
    const auto [running, first] = running_.try_emplace(key_, false);
    // One at a time: two would only be in each other's way, and an oversized record is costly.
    if (first) {
      records_.start(key_);
    } else {
      running->second = true;
    }
  }
}

void Compactor::done(const RecordCompactor::Done& record) {
  key_.assign(record.key);
  const auto running = running_.find(key_);
  const bool due_again = running->second;
  running_.erase(running);
  const bool undone = record.outcome == RecordCompactor::CompactionOutcome::kFailed ||
                      record.outcome == RecordCompactor::CompactionOutcome::kConflict;
  const std::lock_guard lock(mutex_);
  if (due_again && !undone) {
    due_.push_back(key_);
  } else if (undone && !stopping_ && !users_.remember(key_, Clock::now())) {
    metrics_->queue_overflows.add();
  }
}

void Compactor::work() {
  while (true) {
    take_rules();
    start_due(Clock::now() - options_.quiet_after);
    {
      std::unique_lock lock(mutex_);
      if (stopping_) break;
      if (records_.in_flight() == 0) {
        stopping_changed_.wait_for(lock, kTurn, [this] { return stopping_; });
        continue;
      }
    }
    records_.wait(Clock::now() + kTurn);
  }
  if (options_.drain_timeout.count() > 0) drain(Clock::now() + options_.drain_timeout);
}

void Compactor::drain(Clock::time_point until) {
  // Everything is quiet once the writers have stopped.
  set_writes_wait(false);
  while (Clock::now() < until) {
    start_due(Clock::time_point::max());
    if (records_.in_flight() == 0) return;
    records_.wait(until);
  }
}

}  // namespace fcap::updater
