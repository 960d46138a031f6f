#include "updater/pipeline/cluster_partition_set.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kLookStep{1};
constexpr std::chrono::hours kMarksOutlive{1};

ShardTurns::Options turn_options(const MarkOptions& options) {
  return {.key_prefix = options.key_prefix,
          .deadline = options.deadline,
          .interval = options.interval,
          .idle_interval = options.idle_interval,
          .marks_live = options.retention + kMarksOutlive};
}

}  // namespace

ClusterPartitionSet::ClusterPartitionSet(Store& store, std::shared_ptr<redis::Client> client,
                                         Epoch epoch, OffsetSource& source, MarkOptions options,
                                         Metrics& metrics, LogCallback log)
    : PartitionSet(store, std::move(epoch), source, std::move(options), metrics, std::move(log)),
      turns_(
          std::move(client), turn_options(options_),
          [this](std::int32_t id, const MarkValue& mark) { return ask_log(id, mark); }, metrics,
          log_) {}

const ShardedPartition* ClusterPartitionSet::sharded(std::int32_t id) const {
  return turns_.find(id);
}

// --- The life of a partition.

void ClusterPartitionSet::assign(std::vector<PartitionOffset>& partitions) {
  last_found_ = partitions_.end();
  std::vector<std::int32_t> asked;
  for (const PartitionOffset& at : partitions) {
    turns_.remove(at.partition);
    partitions_.erase(at.partition);
    Partition& p = partitions_.emplace(at.partition, nullptr).first->second;
    p.generation = ++generations_;
    p.phase = PartitionPhase::kAsking;
    p.asked = PartitionSet::OffsetQuery::kYes;
    asked.push_back(at.partition);
  }
  source_->ask(asked);
  const Clock::time_point until = Clock::now() + options_.deadline;
  const auto answered = [this](const PartitionOffset& at) {
    return source_->answer(at.partition).has_value();
  };
  while (!std::ranges::all_of(partitions, answered) && Clock::now() < until) {
    std::this_thread::sleep_for(kLookStep);
  }
  for (PartitionOffset& at : partitions) {
    Partition& p = partitions_.at(at.partition);
    find_start(at.partition, p, Clock::now());
    if (!p.positioned) continue;
    at.offset = p.place_at;
    p.must_move = false;
  }
  metrics_->assigned_partitions.set(static_cast<std::int64_t>(partitions_.size()));
}

void ClusterPartitionSet::revoke(std::span<const PartitionOffset> partitions) {
  for (const PartitionOffset& at : partitions) {
    turns_.remove(at.partition);
    pieces_due_.erase(at.partition);
    lost_.erase(at.partition);
  }
  PartitionSet::revoke(partitions);
}

// Where reading begins, or begins again in another log.
void ClusterPartitionSet::find_start(std::int32_t id, Partition& p, Clock::time_point now) {
  const auto bounds = bounds_of(id, p, now);
  if (!bounds) return;
  heard_kafka(p);
  recovered(p);
  if (!p.positioned) return start_partition(id, p, *bounds);
  if (!p.other_log) {
    p.phase = PartitionPhase::kConfirming;
    return;
  }
  p.bounds = bounds;
  follow_other_log(id, p, bounds->retention_start);
  renew_marks(id, p, bounds->retention_start);
  turns_.find(id)->marks.raise_oldest(bounds->retention_start);
}

void ClusterPartitionSet::start_partition(std::int32_t id, Partition& p, const LogBounds& bounds) {
  // Live reading begins at the committed offset. What lies below it and no shard's mark claims
  // becomes a gap, and is read again meanwhile.
  const std::int64_t next = bounds.committed.value_or(bounds.retention_start);
  p.bounds = bounds;
  p.commit_sent = bounds.committed;
  p.log.forget();
  place(p, next);
  const std::int64_t oldest = std::min(bounds.retention_start, next);
  renew_marks(id, p, oldest);
  turns_.find(id)->marks.raise_oldest(oldest);
  turns_.find(id)->committed = bounds.committed.has_value();
  if (doubts_.contains(id)) turns_.find(id)->marks.doubt();
  p.phase = PartitionPhase::kConfirming;
  report(LogLevel::kInfo, fmt::format("partition {}: committed {}; reading from {}", id,
                                      describe(bounds.committed), next));
}

void ClusterPartitionSet::renew_marks(std::int32_t id, Partition& p, std::int64_t retention_start) {
  p.mark_may_fall = false;
  const std::int64_t next = p.tracker.next_offset().value_or(retention_start);
  turns_.add(id, ShardMarks(retention_start, next, SlotSet::all(), ShardTurns::mark_slots()),
             fmt::format("{}:{}:{}", options_.group_id, options_.topic, id));
}

void ClusterPartitionSet::tick(Clock::time_point now, Instant wall_now) {
  take_looks(now);
  for (auto& [id, p] : partitions_) prepare(id, p, now);
  source_->ask(to_ask_);
  for (const std::int32_t id : to_ask_) partitions_.at(id).asked = PartitionSet::OffsetQuery::kYes;
  to_ask_.clear();
  if (std::exchange(hurry_, false)) turns_.hurry();
  turns_.tick(now, wall_now);
  const SlotSet gone = turns_.take_marks_gone();
  marks_gone_ |= gone;
  if (!gone.empty()) {
    for (const auto& it : partitions_) lost_[it.first].slots |= gone;
  }
  for (auto& [id, p] : partitions_) follow_turns(id, p);
  metrics_->shards_away.set(static_cast<std::int64_t>(turns_.shards_away()));
  shards_trouble_ = turns_.trouble();
  if (!PartitionSet::failing()) return;
  if (!shards_trouble_.empty()) shards_trouble_ += '\n';
  shards_trouble_ += trouble_;
}

void ClusterPartitionSet::prepare(std::int32_t id, Partition& p, Clock::time_point now) {
  if (p.phase == PartitionPhase::kChecking && now >= p.mark_due) p.phase = PartitionPhase::kAsking;
  if (p.phase == PartitionPhase::kAsking) find_start(id, p, now);
  if (!p.positioned) return;
  look_if_due(id, p, now);
  if (p.jump) judge_jump(id, p, now);
  if (p.phase > PartitionPhase::kAsking) judge_lost(id, p, now);
  if (p.mark_may_fall) {
    // The log goes on below the position: it is another one, and what the group had committed was
    // of the former one. Some of its messages may be done by now, so its marks begin at the first
    // one that was taken, not at the first one that is not done.
    p.bounds.reset();
    renew_marks(id, p, p.sure_from);
  }
  ShardedPartition* const of_shards = turns_.find(id);
  if (of_shards == nullptr) return;
  of_shards->marks.taken(p.tracker.next_offset().value_or(0));
  of_shards->position = p.done_below().value_or(0);
  // Where the position stands still, a look may have found more since.
  of_shards->log = p.log.identity(of_shards->position);
}

void ClusterPartitionSet::follow_turns(std::int32_t id, Partition& p) {
  const ShardedPartition* const of_shards = sharded(id);
  if (of_shards == nullptr || p.phase < PartitionPhase::kConfirming) return;
  if (doubts_.contains(id) && turns_.told(*of_shards)) doubts_.erase(id);
  if (of_shards->left_behind) {
    leave_behind(id, p);
    if (p.phase == PartitionPhase::kConfirming) return;
    // Nothing that is read before its marks are confirmed would count: all of it would be put off
    // into gaps.
    move_again(p);
    p.phase = PartitionPhase::kConfirming;
    return;
  }
  p.left_behind = false;
  if (p.phase != PartitionPhase::kConfirming || !turns_.ready(*of_shards)) return;
  p.phase = p.must_move ? PartitionPhase::kPlacing : PartitionPhase::kReading;
}

bool ClusterPartitionSet::checking() const noexcept {
  return !partitions_.empty() && (PartitionSet::checking() || turns_.waiting());
}

bool ClusterPartitionSet::failing() const noexcept {
  return PartitionSet::failing() || turns_.shards_away() > 0;
}

bool ClusterPartitionSet::marks_settled() const noexcept {
  return std::ranges::all_of(partitions_, [this](const auto& it) {
    const ShardedPartition* const of_shards = sharded(it.first);
    if (of_shards == nullptr || it.second.phase <= PartitionPhase::kConfirming) return true;
    return of_shards->position == it.second.done_below().value_or(0) && turns_.settled(*of_shards);
  });
}

void ClusterPartitionSet::doubt_all() {
  for (auto& [id, p] : partitions_) {
    doubts_.insert(id);
    ShardedPartition* const of_shards = turns_.find(id);
    if (of_shards == nullptr) continue;
    // Messages that were taken since the last tick may have been written and acknowledged by now,
    // so they are doubted as well.
    of_shards->marks.taken(p.tracker.next_offset().value_or(0));
    of_shards->marks.doubt();
  }
}

// --- Whether a mark is about the log that is read.

std::uint64_t ClusterPartitionSet::ask_log(std::int32_t id, const MarkValue& mark) {
  if (looks_ == nullptr) return logs_matter_ ? ++looks_asked_ : 0;  // never answered
  const auto found = partitions_.find(id);
  const bool committed =
      found != partitions_.end() && found->second.bounds && found->second.bounds->committed;
  LogLooks::LookQuestion question{.partition = id, .ticket = ++looks_asked_};
  LogQuestion asked{.partition = id,
                    .known = KnownLog{mark.log.cluster, points_of(mark.log), mark.position},
                    .log = mark.log,
                    .believe_unknown = committed};
  for (const LogPoint& point : asked.known.points) question.offsets.push_back(point.offset);
  const std::uint64_t ticket = question.ticket;
  asked_[ticket] = std::move(asked);
  looks_->ask(std::move(question));
  return ticket;
}

bool ClusterPartitionSet::take_other_look(const LogLooks::LookAnswer& answer) {
  const auto found = asked_.find(answer.ticket);
  if (found == asked_.end()) return false;
  const LogQuestion asked = std::move(found->second);
  asked_.erase(found);
  Partition* const p = find(asked.partition);
  if (p == nullptr) return true;
  if (!answer.status.ok()) {
    (void)turns_.judged(asked.partition, answer.ticket, std::nullopt);
    return true;
  }
  const LogVerdict verdict = judge_mark(asked.known, answer.look);
  using Is = LogVerdict::LogMatch;
  const bool usable = verdict.is == Is::kSame ? verdict.newest || asked.believe_unknown
                                              : verdict.is == Is::kUnknown && asked.believe_unknown;
  // An answer that nobody waits for any more may be about a former log.
  if (!turns_.judged(asked.partition, answer.ticket, usable, verdict.shown_by)) return true;
  p->log.set_cluster(answer.look.cluster);
  turns_.find(asked.partition)->marks.raise_oldest(answer.look.low);
  const std::int64_t next = p->tracker.next_offset().value_or(0);
  if (usable && verdict.newest) p->log.know(asked.log, next, verdict.newest);
  if (usable && !verdict.newest) p->log.assume(asked.log, next);
  if (usable && verdict.is == Is::kUnknown) say_unverified(asked.partition, *p, verdict);
  if (verdict.is == Is::kUnproven) {
    report(LogLevel::kWarning,
           fmt::format("partition {}: a shard's mark, {}, may be about another log: {}; the mark "
                       "does not count",
                       asked.partition, asked.known.position, verdict.why));
  }
  if (verdict.is == Is::kAnother) {
    metrics_->offset_resets.add();
    report(LogLevel::kError,
           fmt::format("partition {}: this is not the log that was read up to a shard's mark, {}: "
                       "{}; the mark does not count",
                       asked.partition, asked.known.position, verdict.why));
  }
  return true;
}

}  // namespace fcap::updater
