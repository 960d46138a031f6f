#include "updater/pipeline/partition_set.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "updater/process/invariant.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kWaitStep{1};
// The newest event that a mark vouches for may be a little ahead of the clock.
constexpr std::chrono::hours kMarkOutlives{1};

}  // namespace

PartitionSet::PartitionSet(Store& store, Epoch epoch, OffsetSource& source, MarkOptions options,
                           Metrics& metrics, LogCallback log)
    : store_(&store),
      epoch_(std::move(epoch)),
      source_(&source),
      options_(std::move(options)),
      metrics_(&metrics),
      log_(std::move(log)),
      backoff_(options_.backoff_min, options_.backoff_max,
               base::seeded_jitter(options_.jitter_seed)) {}

PartitionSet::~PartitionSet() {
  for (auto& [id, p] : partitions_) retire(p.mark.take());
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
  // Kafka delivers many messages of one partition in a row, so the last one found is often the
  // next.
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
      retire(old->second.mark.take());
      partitions_.erase(old);
    }
    auto mark = std::make_unique<Mark>(
        *store_, mark_key(options_.key_prefix, options_.group_id, options_.topic, at.partition));
    Partition& p = partitions_.emplace(at.partition, std::move(mark)).first->second;
    p.generation = ++generations_;
    start_check(p);
  }
  std::vector<std::int32_t> asked;
  for (const PartitionOffset& at : partitions) {
    partitions_.at(at.partition).asked = OffsetQuery::kYes;
    asked.push_back(at.partition);
  }
  source_->ask(asked);
  await_answers(partitions);
  const Clock::time_point now = Clock::now();
  for (PartitionOffset& at : partitions) {
    Partition& p = partitions_.at(at.partition);
    after_mark(at.partition, p, p.mark->poll(true), now);
  }
  await_looks(partitions);
  for (PartitionOffset& at : partitions) {
    Partition& p = partitions_.at(at.partition);
    if (p.phase == PartitionPhase::kAsking && p.mark_verdict) finish_check(at.partition, p, now);
    if (!p.positioned) continue;
    at.offset = p.place_at;
    p.must_move = false;
  }
  metrics_->assigned_partitions.set(static_cast<std::int64_t>(partitions_.size()));
}

void PartitionSet::await_answers(std::span<const PartitionOffset> partitions) {
  const Clock::time_point until = Clock::now() + options_.deadline;
  const auto settled = [this](const PartitionOffset& at) {
    return !partitions_.at(at.partition).mark->running() && source_->answer(at.partition);
  };
  while (!std::all_of(partitions.begin(), partitions.end(), settled) && Clock::now() < until) {
    std::this_thread::sleep_for(kWaitStep);
  }
}

void PartitionSet::await_looks(std::span<const PartitionOffset> partitions) {
  const Clock::time_point until = Clock::now() + options_.deadline;
  const auto waits = [this](const PartitionOffset& at) {
    return partitions_.at(at.partition).mark_look.has_value();
  };
  take_looks(Clock::now());
  while (std::any_of(partitions.begin(), partitions.end(), waits) && Clock::now() < until) {
    std::this_thread::sleep_for(kWaitStep);
    take_looks(Clock::now());
  }
}

void PartitionSet::revoke(std::span<const PartitionOffset> partitions) {
  last_found_ = partitions_.end();
  for (const PartitionOffset& at : partitions) {
    const auto found = partitions_.find(at.partition);
    if (found == partitions_.end()) continue;
    retire(found->second.mark.take());
    partitions_.erase(found);
  }
  if (!failing()) failures_logged_ = 0;
  std::erase_if(sealed_, [this](const Batch::BatchOffsets& range) {
    return partitions_.find(range.partition) == partitions_.end();
  });
  metrics_->assigned_partitions.set(static_cast<std::int64_t>(partitions_.size()));
}

void PartitionSet::start_check(Partition& p) {
  p.phase = PartitionPhase::kChecking;
  p.mark_due = {};
  p.bounds.reset();
  p.mark_look.reset();
  p.mark_verdict.reset();
  const std::uint64_t epoch = epoch_();
  // Pieces under way were written over other connections in part, perhaps to a server that is
  // gone.
  if (p.epoch != epoch) p.gaps_generation = ++generations_;
  p.reconnected = p.reconnected || p.epoch != epoch;
  p.epoch = epoch;
  if (p.mark->busy()) return;  // its outcome leads here again
  p.operation_epoch = epoch;
  p.mark->read(Clock::now() + options_.deadline);
}

void PartitionSet::place(Partition& p, std::int64_t offset) {
  p.generation = ++generations_;
  p.gaps_generation = p.generation;
  p.gaps = gaps_below(p.gaps, offset);
  p.sure_from = offset;
  p.tracker = OffsetTracker(offset);
  p.log.restart(offset);
  p.letters.clear();
  p.positioned = true;
  p.open = false;
  p.must_move = true;
  p.place_at = offset;
  p.first_message = true;
}

std::optional<Result<LogBounds>> PartitionSet::answer_of(std::int32_t id, Partition& p) {
  if (p.asked == OffsetQuery::kNo) {
    p.asked = OffsetQuery::kSoon;
    to_ask_.push_back(id);
  }
  if (p.asked == OffsetQuery::kSoon) return std::nullopt;
  std::optional<Result<LogBounds>> answer = source_->answer(id);
  if (answer) p.asked = OffsetQuery::kNo;
  return answer;
}

std::optional<LogBounds> PartitionSet::bounds_of(std::int32_t id, Partition& p,
                                                 Clock::time_point now) {
  // The answer about a jump may be about a log that no longer exists.
  if (p.jump && p.phase != PartitionPhase::kAsking) p.asked = OffsetQuery::kNo;
  p.phase = PartitionPhase::kAsking;
  const std::optional<Result<LogBounds>> answer = answer_of(id, p);
  if (answer && answer->ok()) return answer->value();
  await_kafka(id, p, now);
  if (!answer) return std::nullopt;
  p.phase = PartitionPhase::kChecking;
  failed(id, p, now, "cannot find where to begin: " + answer->status().text());
  return std::nullopt;
}

void PartitionSet::finish_check(std::int32_t id, Partition& p, Clock::time_point now) {
  if (!p.positioned) {
    if (!p.bounds) p.bounds = bounds_of(id, p, now);
    if (!p.bounds) return;
    if (!mark_look_done(id, p)) return await_kafka(id, p, now);
    heard_kafka(p);
    return settle_start(id, p, *p.bounds, *p.mark_verdict);
  }
  if (p.other_log) {
    const auto bounds = bounds_of(id, p, now);
    if (!bounds) return;
    heard_kafka(p);
    return follow_other_log(id, p, bounds->retention_start);
  }
  const Mark::Value& found = p.mark->found();
  // A mark that this process has not written may be a restored one, of a log that no longer exists.
  const bool ours = found == p.mark->confirmed() || found == p.mark->attempted();
  if (!ours && !mark_look_done(id, p)) return await_kafka(id, p, now);
  using Is = LogVerdict::LogMatch;
  const bool of_another =
      !ours && (p.mark_verdict->is == Is::kAnother || p.mark_verdict->is == Is::kUnproven);
  const MarkCheck check{claim_of(p.mark->confirmed()), claim_of(p.mark->attempted()),
                        p.reconnected};
  Rewind rewind = decide_rewind(check, of_another ? std::nullopt : claim_of(found));
  // The mark in Redis was to fall: it claims too much, or is about another log. And what was
  // written since that was found out may have gone to a server that is gone. So nothing is certain.
  const bool distrusted = ours && p.reconnected && p.mark_may_fall;
  if (doubts_.contains(id) || distrusted) rewind = {Rewind::To::kRetentionStart, {}, true};
  if (rewind.to == Rewind::To::kRetentionStart) {
    const auto bounds = bounds_of(id, p, now);
    if (!bounds) return;
    rewind.certain = {bounds->retention_start, {}};
    if (p.mark->confirmed()) note_log_start(id, *bounds, SlotSet::all());
  }
  heard_kafka(p);
  if (rewind.to != Rewind::To::kNowhere) recover(id, p, rewind);
  p.mark_may_fall = p.mark_may_fall || of_another;
  p.mark->accept_found();
  p.reconnected = false;
  p.phase = PartitionPhase::kConfirming;
}

void PartitionSet::doubt_all() {
  for (auto& [id, p] : partitions_) {
    doubts_.insert(id);
    start_check(p);
  }
}

void PartitionSet::failed(std::int32_t id, Partition& p, Clock::time_point now, std::string why) {
  ++p.failures;
  p.mark_due = now + backoff_.after(p.failures);
  metrics_->mark_failures.add();
  trouble_ = fmt::format("partition {}: {}", id, why);
  // A single failure is not logged. If many partitions fail together, one line is enough.
  const bool worth_a_line = p.failures > 1 && (p.failures & (p.failures - 1)) == 0;
  if (!worth_a_line || p.failures <= failures_logged_) return;
  failures_logged_ = p.failures;
  report(LogLevel::kWarning,
         fmt::format("{}; attempt {}; nothing of it is read before its mark is confirmed", trouble_,
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

void PartitionSet::after_mark(std::int32_t id, Partition& p, Mark::MarkOutcome outcome,
                              Clock::time_point now) {
  switch (outcome) {
    case Mark::MarkOutcome::kNothing:
      return;
    case Mark::MarkOutcome::kRead:
      if (!p.mark->key_of_no_mark().empty() && !std::exchange(p.no_mark_said, true)) {
        report(LogLevel::kWarning, no_mark_text(p.mark->key_of_no_mark()));
      }
      if (p.phase != PartitionPhase::kChecking) return;
      // If the store was reconnected during the read, it is read once more.
      if (p.epoch == epoch_() || !p.positioned) finish_check(id, p, now);
      return;
    case Mark::MarkOutcome::kReadFailed:
      heard_kafka(p);  // it is Redis that it waits for now
      failed(id, p, now, "the mark cannot be read: " + p.mark->failure());
      return;
    case Mark::MarkOutcome::kWritten:
      recovered(p);
      p.compared = p.mark_begun;
      // A write that was started before the mark was to fall has not lowered it.
      if (mark_says_all(p) && position_of(claim_of(p.mark->confirmed())) <= p.done_below()) {
        p.mark_may_fall = false;
      }
      if (p.phase == PartitionPhase::kConfirming && !p.mark_may_fall && mark_says_all(p)) {
        doubts_.erase(id);
        p.phase = p.must_move ? PartitionPhase::kPlacing : PartitionPhase::kReading;
      }
      metrics_->marks_written.add();
      return;
    case Mark::MarkOutcome::kConflict:
      start_check(p);
      return;
    case Mark::MarkOutcome::kUnknown:
      p.phase = PartitionPhase::kChecking;
      failed(id, p, now, "the mark cannot be written: " + p.mark->failure());
      return;
  }
}

void PartitionSet::tick_partition(std::int32_t id, Partition& p, Clock::time_point now,
                                  Instant wall_now) {
  // An answer from before a reconnection says nothing about the present server.
  after_mark(id, p, p.mark->poll(p.operation_epoch == epoch_()), now);
  if (p.phase != PartitionPhase::kChecking && p.epoch != epoch_()) start_check(p);
  if (p.positioned) look_if_due(id, p, now);
  if (p.jump) judge_jump(id, p, now);
  if (p.mark->busy()) return;
  if (p.phase == PartitionPhase::kAsking) finish_check(id, p, now);
  if (p.phase == PartitionPhase::kChecking && now >= p.mark_due) start_check(p);
  if (p.phase <= PartitionPhase::kAsking) return;
  count_done(p);
  const std::int64_t wanted = mark_to_write(
      p.done_below().value_or(0), position_of(claim_of(p.mark->confirmed())), p.mark_may_fall);
  if (p.phase == PartitionPhase::kConfirming) return write_mark(p, wanted, now, wall_now);
  const bool moved = mark_moved(p, wanted);
  if (now < p.mark_due && !(hurry_ && moved)) return;
  if (!moved && p.mark_due + (options_.idle_interval - options_.interval) > now) return;
  write_mark(p, wanted, now, wall_now);
}

void PartitionSet::write_mark(Partition& p, std::int64_t offset, Clock::time_point now,
                              Instant wall_now) {
  const auto claimed = position_of(claim_of(p.mark->confirmed()));
  must_hold(offset <= p.done_below().value_or(0) || offset == claimed,
            "a mark names no offset beyond what was acknowledged");
  must_hold(p.mark_may_fall || offset >= claimed.value_or(0),
            "a mark falls only where something was lost");
  p.mark_due = now + options_.interval;
  p.mark_begun = now;
  // If another server is reached by now whose mark was not compared yet, it must not get this one:
  // it may lack the events that the mark vouches for.
  p.operation_epoch = p.epoch;
  p.mark->write(value_of_mark(p, offset), wall_now + options_.retention + kMarkOutlives,
                now + options_.deadline, p.epoch);
}

void PartitionSet::tick(Clock::time_point now, Instant wall_now) {
  take_looks(now);
  for (auto& [id, p] : partitions_) {
    tick_partition(id, p, now, wall_now);
  }
  source_->ask(to_ask_);
  for (const std::int32_t id : to_ask_) partitions_.at(id).asked = OffsetQuery::kYes;
  to_ask_.clear();
  hurry_ = false;
  std::erase_if(retired_, [](const auto& mark) {
    (void)mark->poll(false);
    return !mark->busy();
  });
}

bool PartitionSet::marks_settled() const noexcept {
  return std::all_of(partitions_.begin(), partitions_.end(), [this](const auto& it) {
    const Partition& p = it.second;
    if (p.phase <= PartitionPhase::kConfirming) return true;  // not available yet
    const auto written = position_of(claim_of(p.mark->confirmed()));
    return !p.mark->busy() && written >= p.done_below().value_or(0) && !mark_moved(p, *written);
  });
}

void PartitionSet::to_place(std::vector<PartitionOffset>& out) const {
  out.clear();
  for (const auto& [id, p] : partitions_) {
    if (p.phase == PartitionPhase::kPlacing && !p.held) out.push_back({id, p.place_at});
  }
}

void PartitionSet::placed(std::int32_t partition) {
  Partition* p = find(partition);
  if (p == nullptr || p->phase != PartitionPhase::kPlacing) return;
  p->must_move = false;
  p->phase = PartitionPhase::kReading;
}

void PartitionSet::seek_all_again() {
  for (auto& [id, p] : partitions_) move_again(p);
}

void PartitionSet::move_again(Partition& p) {
  if (!p.positioned) return;
  p.must_move = true;
  p.first_message = true;
  p.place_at = p.tracker.next_offset().value_or(p.place_at);
  if (p.phase == PartitionPhase::kReading) p.phase = PartitionPhase::kPlacing;
}

bool PartitionSet::take(std::int32_t partition, const Delivered& message) {
  const std::int64_t offset = message.offset;
  Partition* p = find(partition);
  if (p == nullptr) return false;
  if (p->phase != PartitionPhase::kReading || p->held) {
    // The consumer has moved past the message that is dropped here. Unless it is set back, that
    // message is never read, and yet the offsets behind it are committed.
    move_again(*p);
    return false;
  }
  const std::int64_t expected = p->open ? p->open_end : p->tracker.next_offset().value_or(offset);
  if (offset < expected) {
    // The position is past the log's end: the topic was recreated or truncated.
    metrics_->offset_resets.add();
    report(LogLevel::kError, fmt::format("partition {}: reading continues at offset {}, below the "
                                         "position {}: was the topic recreated?",
                                         partition, offset, expected));
    close_range(partition, *p);
    place(*p, offset);
    p->log.forget();
    p->must_move = false;
    p->mark_may_fall = true;
  } else if (offset > expected && p->first_message) {
    p->jump = {expected, offset};
    if (message.timestamp_ms >= 0) p->jump->time = instant_from_ms(message.timestamp_ms);
  }
  p->first_message = false;
  if (!p->open) {
    p->open = true;
    p->open_first = offset;
  }
  p->open_end = offset + 1;
  p->open_last = message;
  return true;
}

void PartitionSet::close_range(std::int32_t id, Partition& p) {
  if (!p.open) return;
  // In a cluster the shards have the marks (ShardTurns::ready()).
  must_hold(!p.mark.exists() || p.mark->confirmed().has_value(),
            "a partition is read only while Redis holds a mark of it");
  p.open = false;
  const Delivered& last = p.open_last;
  p.log.delivered({last.offset, last.timestamp_ms, hash_message(last.key, last.payload)});
  sealed_.push_back({.partition = id,
                     .generation = p.generation,
                     .ticket = p.tracker.begin(p.open_first, p.open_end),
                     .first = p.open_first,
                     .end = p.open_end,
                     .stamp = send_stamp(id)});
}

void PartitionSet::seal(std::vector<Batch::BatchOffsets>& ranges) {
  for (auto& [id, p] : partitions_) close_range(id, p);
  ranges.assign(sealed_.begin(), sealed_.end());
  sealed_.clear();
}

void PartitionSet::complete(const Batch::BatchOffsets& range) {
  Partition* p = find(range.partition);
  if (p == nullptr || p->generation != range.generation) return;
  p->tracker.complete(range.ticket);
}

void PartitionSet::complete_batch(const Batch& batch) {
  for (const Batch::BatchOffsets& range : batch.ranges) complete(range);
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
