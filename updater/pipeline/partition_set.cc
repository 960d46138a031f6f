#include "updater/pipeline/partition_set.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kWaitStep{1};

std::string describe(std::optional<std::int64_t> offset) {
  return offset ? std::to_string(*offset) : "none";
}

}  // namespace

PartitionSet::PartitionSet(Store& store, Epoch epoch, OffsetSource& source, MarkOptions options,
                           Metrics& metrics, LogCallback log)
    : store_(&store),
      epoch_(std::move(epoch)),
      source_(&source),
      options_(std::move(options)),
      metrics_(&metrics),
      log_(std::move(log)),
      backoff_(options_.backoff_min, options_.backoff_max, options_.jitter_seed) {}

PartitionSet::~PartitionSet() {
  for (auto& [id, p] : partitions_) retire(std::move(p.mark));
  // Ends: every store operation completes by its deadline.
  while (!retired_.empty()) {
    std::erase_if(retired_, [](const auto& mark) {
      (void)mark->poll(false);
      return !mark->busy();
    });
    if (!retired_.empty()) std::this_thread::sleep_for(kWaitStep);
  }
}

void PartitionSet::report(LogLevel level, std::string_view text) const {
  if (log_) log_(level, text);
}

PartitionSet::Partition* PartitionSet::find(std::int32_t id) {
  // Messages of a partition come in stretches.
  if (last_found_ == partitions_.end() || last_found_->first != id) {
    last_found_ = partitions_.find(id);
  }
  return last_found_ == partitions_.end() ? nullptr : &last_found_->second;
}

void PartitionSet::retire(std::unique_ptr<Mark> mark) {
  if (mark && mark->busy()) retired_.push_back(std::move(mark));
}

void PartitionSet::assign(std::vector<PartitionOffset>& partitions) {
  last_found_ = partitions_.end();
  for (const PartitionOffset& at : partitions) {
    if (const auto old = partitions_.find(at.partition); old != partitions_.end()) {
      retire(std::move(old->second.mark));
      partitions_.erase(old);
    }
    auto mark = std::make_unique<Mark>(
        *store_, mark_key(options_.key_prefix, options_.group_id, options_.topic, at.partition));
    Partition& p = partitions_.emplace(at.partition, std::move(mark)).first->second;
    p.generation = ++generations_;
    start_check(p);
  }
  std::vector<PartitionOffset> committed = partitions;
  const Status status = source_->committed(committed);
  if (!status.ok()) report(LogLevel::kWarning, status.text());
  await_marks(partitions);
  for (std::size_t i = 0; i < partitions.size(); ++i) {
    PartitionOffset& at = partitions[i];
    Partition& p = partitions_.at(at.partition);
    if (!status.ok() || p.mark->poll(true) != Mark::Outcome::kRead) continue;
    settle_start(at.partition, p,
                 committed[i].offset >= 0 ? std::optional(committed[i].offset) : std::nullopt);
    if (!p.positioned) continue;
    at.offset = p.place_at;
    p.must_move = false;
  }
  metrics_->assigned_partitions.set(static_cast<std::int64_t>(partitions_.size()));
}

void PartitionSet::await_marks(std::span<const PartitionOffset> partitions) {
  // Every read ends by its deadline, so this does.
  for (const PartitionOffset& at : partitions) {
    while (partitions_.at(at.partition).mark->running()) std::this_thread::sleep_for(kWaitStep);
  }
}

void PartitionSet::revoke(std::span<const PartitionOffset> partitions) {
  last_found_ = partitions_.end();
  for (const PartitionOffset& at : partitions) {
    const auto found = partitions_.find(at.partition);
    if (found == partitions_.end()) continue;
    retire(std::move(found->second.mark));
    partitions_.erase(found);
  }
  if (!failing()) failures_logged_ = 0;
  std::erase_if(sealed_, [this](const Batch::Range& range) {
    return partitions_.find(range.partition) == partitions_.end();
  });
  report_lag();
  metrics_->assigned_partitions.set(static_cast<std::int64_t>(partitions_.size()));
}

void PartitionSet::start_check(Partition& p) {
  p.phase = Phase::kChecking;
  p.mark_due = {};
  const std::uint64_t epoch = epoch_();
  p.reconnected = p.reconnected || p.epoch != epoch;
  p.epoch = epoch;
  if (p.mark->busy()) return;  // its outcome leads here again
  p.operation_epoch = epoch;
  p.mark->read(Clock::now() + options_.deadline);
}

void PartitionSet::place(Partition& p, std::int64_t offset) {
  p.generation = ++generations_;
  p.tracker = OffsetTracker(offset);
  p.letters.clear();
  p.positioned = true;
  p.open = false;
  p.must_move = true;
  p.place_at = offset;
  p.first_message = true;
}

void PartitionSet::settle_start(std::int32_t id, Partition& p,
                                std::optional<std::int64_t> committed) {
  const Start start = decide_start(committed, p.mark->found());
  std::int64_t offset = start.offset;
  if (start.retention_start) {
    const Result<std::int64_t> first = source_->retention_start(id);
    if (!first.ok()) {
      report(LogLevel::kWarning, first.status().text());
      return;
    }
    offset = first.value();
    if (committed) metrics_->mark_losses.add();
    report_retention_start(id, p, committed, offset);
  } else {
    if (committed && *committed > offset) {
      metrics_->rewinds.add();
      metrics_->rewound_messages.add(static_cast<std::uint64_t>(*committed - offset));
    }
    report(LogLevel::kInfo, fmt::format("partition {}: mark {}, committed {}; reading from {}", id,
                                        describe(p.mark->found()), describe(committed), offset));
  }
  p.mark->accept_found();
  p.reconnected = false;
  p.commit_sent = committed;
  place(p, offset);
  // The mark of another log must not stand above this one's offsets.
  p.mark_may_fall = start.retention_start;
  p.phase = Phase::kConfirming;
}

void PartitionSet::report_retention_start(std::int32_t id, const Partition& p,
                                          std::optional<std::int64_t> committed,
                                          std::int64_t offset) {
  if (!p.mark->found()) {
    report(committed ? LogLevel::kWarning : LogLevel::kInfo,
           fmt::format("partition {}: no mark in Redis (committed: {}); reading from the start of "
                       "retention, offset {}",
                       id, describe(committed), offset));
    return;
  }
  metrics_->offset_resets.add();
  report(LogLevel::kWarning,
         fmt::format("partition {}: mark {}, but the group has committed no offset: the topic was "
                     "recreated, this is another cluster, or the offsets have expired; reading "
                     "from the start of retention, offset {}",
                     id, describe(p.mark->found()), offset));
}

bool PartitionSet::rewind_to(std::int32_t id, Partition& p, const Rewind& rewind) {
  std::int64_t target = rewind.offset;
  if (rewind.to == Rewind::To::kRetentionStart) {
    const Result<std::int64_t> first = source_->retention_start(id);
    if (!first.ok()) {
      report(LogLevel::kWarning, first.status().text());
      return false;
    }
    target = first.value();
  }
  if (p.mark->found() != p.mark->confirmed()) metrics_->mark_losses.add();
  const std::int64_t position = p.tracker.next_offset().value_or(target);
  report(LogLevel::kWarning,
         fmt::format("partition {}: mark {}, last written {}{}; going back from {} to {}", id,
                     describe(p.mark->found()), describe(p.mark->confirmed()),
                     p.reconnected ? ", reconnected since" : "", position, target));
  metrics_->rewinds.add();
  if (position > target) {
    metrics_->rewound_messages.add(static_cast<std::uint64_t>(position - target));
  }
  p.mark_may_fall = p.mark_may_fall || rewind.lower_mark;
  place(p, std::min(target, position));
  return true;
}

void PartitionSet::finish_check(std::int32_t id, Partition& p) {
  if (!p.positioned) {
    // Taken over while Redis or Kafka did not answer.
    std::vector<PartitionOffset> committed{{id, PartitionOffset::kNone}};
    if (const Status status = source_->committed(committed); !status.ok()) {
      report(LogLevel::kWarning, status.text());
      return;
    }
    settle_start(id, p,
                 committed[0].offset >= 0 ? std::optional(committed[0].offset) : std::nullopt);
    return;
  }
  if (p.epoch != epoch_()) return;  // reconnected while it was read: once more
  const MarkCheck check{p.mark->confirmed(), p.mark->attempted(), p.reconnected,
                        p.tracker.next_offset().value_or(0)};
  const Rewind rewind = decide_rewind(check, p.mark->found());
  if (rewind.to != Rewind::To::kNowhere && !rewind_to(id, p, rewind)) return;
  p.mark->accept_found();
  p.reconnected = false;
  p.phase = Phase::kConfirming;
}

void PartitionSet::failed(std::int32_t id, Partition& p, Clock::time_point now, std::string why) {
  ++p.failures;
  p.mark_due = now + backoff_.after(p.failures);
  metrics_->mark_failures.add();
  trouble_ = fmt::format("partition {}: {}", id, why);
  // One failure passes. Of many partitions that fail together, the log needs one line.
  const bool worth_a_line = p.failures > 1 && (p.failures & (p.failures - 1)) == 0;
  if (!worth_a_line || p.failures <= failures_logged_) return;
  failures_logged_ = p.failures;
  report(LogLevel::kWarning,
         fmt::format("{}; attempt {}; nothing is read before its mark is confirmed", trouble_,
                     p.failures));
}

void PartitionSet::recovered(Partition& p) {
  if (p.failures == 0) return;
  p.failures = 0;
  if (failing()) return;
  if (failures_logged_ > 0) report(LogLevel::kInfo, "marks are confirmed again");
  failures_logged_ = 0;
  trouble_.clear();
}

void PartitionSet::after_mark(std::int32_t id, Partition& p, Mark::Outcome outcome,
                              Clock::time_point now) {
  switch (outcome) {
    case Mark::Outcome::kNothing:
      return;
    case Mark::Outcome::kRead:
      if (p.phase != Phase::kChecking) return;
      finish_check(id, p);
      if (p.phase == Phase::kChecking) failed(id, p, now, "it is not known where to begin");
      return;
    case Mark::Outcome::kUnread:
      failed(id, p, now, "the mark cannot be read: " + p.mark->failure());
      return;
    case Mark::Outcome::kWritten:
      recovered(p);
      if (p.phase == Phase::kConfirming) {
        p.phase = p.must_move ? Phase::kPlacing : Phase::kReading;
      }
      // A write from before it was to fall has not made it fall.
      if (p.mark->confirmed() <= p.done_below()) p.mark_may_fall = false;
      metrics_->marks_written.add();
      return;
    case Mark::Outcome::kConflict:
      start_check(p);
      return;
    case Mark::Outcome::kUnknown:
      p.phase = Phase::kChecking;
      failed(id, p, now, "the mark cannot be written: " + p.mark->failure());
      return;
  }
}

void PartitionSet::act(std::int32_t id, Partition& p, Clock::time_point now, Instant wall_now) {
  // An answer that a reconnection overtook says nothing of the server that there is now.
  after_mark(id, p, p.mark->poll(p.operation_epoch == epoch_()), now);
  if (p.phase != Phase::kChecking && p.epoch != epoch_()) start_check(p);
  if (p.mark->busy()) return;
  if (p.phase == Phase::kChecking) {
    if (now >= p.mark_due) start_check(p);
    return;
  }
  const std::int64_t wanted =
      mark_to_write(p.done_below().value_or(0), p.mark->confirmed(), p.mark_may_fall);
  if (p.phase == Phase::kConfirming) return write_mark(p, wanted, now, wall_now);
  const bool moved = p.mark->confirmed() != wanted;
  if (now < p.mark_due && !(hurry_ && moved)) return;
  if (!moved && p.mark_due + (options_.idle_interval - options_.interval) > now) return;
  write_mark(p, wanted, now, wall_now);
}

void PartitionSet::write_mark(Partition& p, std::int64_t offset, Clock::time_point now,
                              Instant wall_now) {
  p.mark_due = now + options_.interval;
  p.operation_epoch = epoch_();
  p.mark->write(offset, wall_now + 2 * options_.retention, now + options_.deadline);
}

void PartitionSet::tick(Clock::time_point now, Instant wall_now) {
  for (auto& [id, p] : partitions_) {
    act(id, p, now, wall_now);
  }
  hurry_ = false;
  std::erase_if(retired_, [](const auto& mark) {
    (void)mark->poll(false);
    return !mark->busy();
  });
}

bool PartitionSet::checking() const noexcept {
  return std::any_of(partitions_.begin(), partitions_.end(),
                     [](const auto& it) { return it.second.phase <= Phase::kConfirming; });
}

bool PartitionSet::failing() const noexcept {
  return std::any_of(partitions_.begin(), partitions_.end(),
                     [](const auto& it) { return it.second.failures > 0; });
}

bool PartitionSet::marks_settled() const noexcept {
  return std::all_of(partitions_.begin(), partitions_.end(), [](const auto& it) {
    const Partition& p = it.second;
    if (p.phase <= Phase::kConfirming) return true;  // not to be had now
    return !p.mark->busy() && p.mark->confirmed() &&
           *p.mark->confirmed() >= p.done_below().value_or(0);
  });
}

void PartitionSet::to_place(std::vector<PartitionOffset>& out) const {
  out.clear();
  for (const auto& [id, p] : partitions_) {
    if (p.phase == Phase::kPlacing && !p.held) out.push_back({id, p.place_at});
  }
}

void PartitionSet::placed(std::int32_t partition) {
  Partition* p = find(partition);
  if (p == nullptr || p->phase != Phase::kPlacing) return;
  p->must_move = false;
  p->phase = Phase::kReading;
}

void PartitionSet::place_again() {
  for (auto& [id, p] : partitions_) move_again(p);
}

void PartitionSet::move_again(Partition& p) {
  if (!p.positioned) return;
  p.must_move = true;
  p.first_message = true;
  p.place_at = p.tracker.next_offset().value_or(p.place_at);
  if (p.phase == Phase::kReading) p.phase = Phase::kPlacing;
}

bool PartitionSet::take(std::int32_t partition, std::int64_t offset) {
  Partition* p = find(partition);
  if (p == nullptr) return false;
  if (p->phase != Phase::kReading || p->held) {
    // The consumer has moved past what is dropped here.
    move_again(*p);
    return false;
  }
  const std::int64_t expected = p->open ? p->open_end : p->tracker.next_offset().value_or(offset);
  if (offset < expected) {
    // The position is past the log's end: the topic was made anew, or truncated.
    metrics_->offset_resets.add();
    report(LogLevel::kError, fmt::format("partition {}: reading goes on at offset {}, below the "
                                         "position {}: was the topic made anew?",
                                         partition, offset, expected));
    close_range(partition, *p);
    place(*p, offset);
    p->must_move = false;
    p->mark_may_fall = true;
  } else if (offset > expected && p->first_message) {
    metrics_->offset_resets.add();
    report(LogLevel::kWarning,
           fmt::format("partition {}: asked for offset {}, the first there is is {}", partition,
                       expected, offset));
  }
  p->first_message = false;
  if (!p->open) {
    p->open = true;
    p->open_first = offset;
  }
  p->open_end = offset + 1;
  return true;
}

std::optional<std::int64_t> PartitionSet::Partition::done_below() const {
  const auto done = tracker.low_water();
  if (!done || letters.empty()) return done;
  return std::min(*done, *letters.begin());
}

std::uint64_t PartitionSet::open_letter(std::int32_t partition, std::int64_t offset) {
  Partition* p = find(partition);
  if (p == nullptr) return 0;
  p->letters.insert(offset);
  return p->generation;
}

void PartitionSet::close_letter(std::int32_t partition, std::uint64_t generation,
                                std::int64_t offset) {
  Partition* p = find(partition);
  if (p == nullptr || p->generation != generation) return;
  if (const auto letter = p->letters.find(offset); letter != p->letters.end()) {
    p->letters.erase(letter);
  }
}

bool PartitionSet::current(std::int32_t partition, std::uint64_t generation) const {
  const auto found = partitions_.find(partition);
  return found != partitions_.end() && found->second.generation == generation;
}

void PartitionSet::hold(std::int32_t partition, bool held) {
  Partition* p = find(partition);
  if (p == nullptr || p->held == held) return;
  p->held = held;
  move_again(*p);
}

bool PartitionSet::held(std::int32_t partition) const {
  const auto found = partitions_.find(partition);
  return found != partitions_.end() && found->second.held;
}

void PartitionSet::close_range(std::int32_t id, Partition& p) {
  if (!p.open) return;
  p.open = false;
  sealed_.push_back({id, p.generation, p.tracker.begin(p.open_first, p.open_end)});
}

void PartitionSet::seal(std::vector<Batch::Range>& ranges) {
  for (auto& [id, p] : partitions_) close_range(id, p);
  ranges.assign(sealed_.begin(), sealed_.end());
  sealed_.clear();
}

void PartitionSet::complete(const Batch::Range& range) {
  Partition* p = find(range.partition);
  if (p == nullptr || p->generation != range.generation) return;
  p->tracker.complete(range.ticket);
}

void PartitionSet::collect_commits(std::vector<PartitionOffset>& out) {
  out.clear();
  for (auto& [id, p] : partitions_) {
    if (!p.positioned || p.commit_sent == p.done_below()) continue;
    p.commit_sent = p.done_below();
    out.push_back({id, *p.commit_sent});
  }
}

void PartitionSet::forget_commits() {
  for (auto& [id, p] : partitions_) p.commit_sent.reset();
}

void PartitionSet::report_lag() {
  std::int64_t sum = 0;
  PartitionGauge::Values lags;
  for (const auto& [id, p] : partitions_) {
    const auto end = source_->known_end(id);
    const auto done = low_water(id);
    if (!end || !done) continue;
    // The end was heard of some time ago.
    const std::int64_t lag = std::max<std::int64_t>(*end - *done, 0);
    lags.emplace(id, lag);
    sum += lag;
  }
  metrics_->lag_messages.set(sum);
  metrics_->partition_lag_messages.replace(std::move(lags));
}

void PartitionSet::list(std::vector<PartitionOffset>& out) const {
  out.clear();
  for (const auto& [id, p] : partitions_) out.push_back({id, PartitionOffset::kNone});
}

std::optional<std::int64_t> PartitionSet::low_water(std::int32_t partition) const {
  const auto found = partitions_.find(partition);
  return found == partitions_.end() || !found->second.positioned ? std::nullopt
                                                                 : found->second.done_below();
}

}  // namespace fcap::updater
