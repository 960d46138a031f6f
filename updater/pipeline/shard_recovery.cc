#include "updater/pipeline/shard_recovery.h"

#include <algorithm>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kBoundsStep{1};
constexpr std::chrono::hours kMarksOutlive{1};

ShardTurns::Options turn_options(const MarkOptions& options) {
  return {.key_prefix = options.key_prefix,
          .deadline = options.deadline,
          .interval = options.interval,
          .idle_interval = options.idle_interval,
          .marks_live = options.retention + kMarksOutlive};
}

}  // namespace

ShardRecovery::ShardRecovery(RecoveryParts parts, std::shared_ptr<ShardPort> shards)
    : parts_(std::move(parts)),
      turns_(
          std::move(shards), turn_options(parts_.options),
          [this](std::int32_t id, const MarkValue& mark) { return ask_log(id, mark); },
          *parts_.metrics, parts_.log) {}

// --- The life of a partition.

void ShardRecovery::assigned(std::span<const PartitionOffset> partitions) {
  std::vector<std::int32_t> asked;
  for (const PartitionOffset& at : partitions) {
    parts_.partitions->at(at.partition).wait_in(PartitionPhase::kAsking);
    asked.push_back(at.partition);
  }
  parts_.questions->ask_bounds(asked);
  const Clock::time_point until = Clock::now() + parts_.options.deadline;
  const auto answered = [this](std::int32_t id) { return parts_.questions->bounds_answered(id); };
  while (!std::ranges::all_of(asked, answered) && Clock::now() < until) {
    std::this_thread::sleep_for(kBoundsStep);
  }
  for (const std::int32_t id : asked) find_start(parts_.partitions->at(id), Clock::now());
}

void ShardRecovery::revoking(std::span<const PartitionOffset> partitions) {
  for (const PartitionOffset& at : partitions) {
    turns_.remove(at.partition);
    pieces_due_.erase(at.partition);
    lost_.erase(at.partition);
    fallen_.erase(at.partition);
  }
}

// Where reading begins, or begins again in another log.
void ShardRecovery::find_start(Partition& p, Clock::time_point now) {
  const auto bounds = parts_.questions->bounds_of(p, now);
  if (!bounds) return;
  PartitionTroubles::heard_kafka(p);
  parts_.troubles->recovered(p, more_fails());
  if (!p.positioned()) return start_partition(p, *bounds);
  if (!p.check().other_log) return p.wait_in(PartitionPhase::kConfirming);
  p.check().bounds = bounds;
  parts_.questions->begin_other_log(p, bounds->retention_start, stamp(p));
  renew_marks(p, bounds->retention_start);
  turns_.find(p.id())->marks.raise_oldest(bounds->retention_start);
}

void ShardRecovery::start_partition(Partition& p, const LogBounds& bounds) {
  // Live reading begins at the committed offset. What lies below it and no shard's mark claims
  // becomes a gap, and is read again meanwhile.
  const std::int64_t next = bounds.committed.value_or(bounds.retention_start);
  p.check().bounds = bounds;
  p.set_committed(bounds.committed);
  p.log().forget();
  p.begin(next);
  const std::int64_t oldest = std::min(bounds.retention_start, next);
  renew_marks(p, oldest);
  ShardedPartition& of_shards = *turns_.find(p.id());
  of_shards.marks.raise_oldest(oldest);
  of_shards.committed = bounds.committed.has_value();
  if (doubts_.contains(p.id())) of_shards.marks.doubt();
  p.wait_in(PartitionPhase::kConfirming);
  parts_.report(LogLevel::kInfo, fmt::format("partition {}: committed {}; reading from {}", p.id(),
                                             describe(bounds.committed), next));
}

void ShardRecovery::renew_marks(const Partition& p, std::int64_t retention_start) {
  fallen_.erase(p.id());
  const std::int64_t next = p.next_offset().value_or(retention_start);
  turns_.add(p.id(), ShardMarks(retention_start, next, SlotSet::all(), ShardTurns::mark_slots()),
             fmt::format("{}:{}:{}", parts_.options.group_id, parts_.options.topic, p.id()));
}

void ShardRecovery::tick(Clock::time_point now, Instant wall_now, bool hurry) {
  now_ = now;
  parts_.questions->take_looks(
      now, [this](const LogLooks::LookAnswer& answer) { return take_log_answer(answer); });
  for (auto& [id, p] : *parts_.partitions) prepare(p, now);
  parts_.questions->send();
  if (hurry) turns_.hurry();
  turns_.tick(now, wall_now);
  const SlotSet gone = turns_.take_marks_gone();
  marks_gone_ |= gone;
  if (!gone.empty()) {
    for (const auto& it : *parts_.partitions) lost_[it.first].slots |= gone;
  }
  for (auto& [id, p] : *parts_.partitions) follow_turns(p);
  parts_.metrics->shards_away.set(static_cast<std::int64_t>(turns_.shards_away()));
  trouble_ = turns_.trouble();
  if (!parts_.troubles->failing()) return;
  if (!trouble_.empty()) trouble_ += '\n';
  trouble_ += parts_.troubles->text();
}

void ShardRecovery::prepare(Partition& p, Clock::time_point now) {
  if (p.phase() == PartitionPhase::kChecking && now >= p.check().again_at) {
    p.wait_in(PartitionPhase::kAsking);
  }
  if (p.phase() == PartitionPhase::kAsking) find_start(p, now);
  if (!p.positioned()) return;
  parts_.questions->look_if_due(p, p.next_offset().value_or(0), now);
  parts_.questions->judge_jump(p, now);
  if (p.phase() > PartitionPhase::kAsking) judge_lost(p, now);
  if (fallen_.contains(p.id())) {
    // The log goes on below the position: it is another one, and what the group had committed was
    // of the former one. Some of its messages may be done by now, so its marks begin at the first
    // one that was taken, not at the first one that is not done.
    p.check().bounds.reset();
    renew_marks(p, p.began_at());
  }
  ShardedPartition* const of_shards = turns_.find(p.id());
  if (of_shards == nullptr) return;
  of_shards->marks.taken(p.next_offset().value_or(0));
  of_shards->position = p.done_below().value_or(0);
  // Where the position stands still, a look may have found more since.
  of_shards->log = p.log().identity(of_shards->position);
}

void ShardRecovery::follow_turns(Partition& p) {
  const ShardedPartition* const of_shards = sharded(p.id());
  if (of_shards == nullptr || p.phase() < PartitionPhase::kConfirming) return;
  if (doubts_.contains(p.id()) && turns_.told(*of_shards)) doubts_.erase(p.id());
  if (of_shards->left_behind) {
    parts_.troubles->leave_behind(p);
    if (p.phase() == PartitionPhase::kConfirming) return;
    // Nothing that is read before its marks are confirmed would count: all of it would be put off
    // into gaps.
    p.move_again();
    p.wait_in(PartitionPhase::kConfirming);
    return;
  }
  p.check().left_behind = false;
  if (p.phase() == PartitionPhase::kConfirming && turns_.ready(*of_shards)) p.let_read();
}

bool ShardRecovery::settled() const {
  return std::ranges::all_of(*parts_.partitions, [this](const auto& it) {
    const ShardedPartition* const of_shards = sharded(it.first);
    if (of_shards == nullptr || it.second.phase() <= PartitionPhase::kConfirming) return true;
    return of_shards->position == it.second.done_below().value_or(0) && turns_.settled(*of_shards);
  });
}

void ShardRecovery::doubt_all() {
  for (const auto& [id, p] : *parts_.partitions) {
    doubts_.insert(id);
    ShardedPartition* const of_shards = turns_.find(id);
    if (of_shards == nullptr) continue;
    // Messages that were taken since the last tick may have been written and acknowledged by now,
    // so they are doubted as well.
    of_shards->marks.taken(p.next_offset().value_or(0));
    of_shards->marks.doubt();
  }
}

// --- Whether a mark is about the log that is read.

std::uint64_t ShardRecovery::ask_log(std::int32_t id, const MarkValue& mark) {
  if (!parts_.questions->can_look()) {
    return parts_.questions->logs_matter() ? parts_.questions->unanswered_ticket() : 0;
  }
  const auto found = parts_.partitions->find(id);
  const bool committed = found != parts_.partitions->end() && found->second.check().bounds &&
                         found->second.check().bounds->committed;
  LogQuestion asked{.partition = id,
                    .known = KnownLog{mark.log.cluster, points_of(mark.log), mark.position},
                    .log = mark.log,
                    .believe_unknown = committed};
  const std::uint64_t ticket = parts_.questions->look_for(id, asked.known);
  asked_[ticket] = std::move(asked);
  return ticket;
}

bool ShardRecovery::take_log_answer(const LogLooks::LookAnswer& answer) {
  const auto found = asked_.find(answer.ticket);
  if (found == asked_.end()) return false;
  const LogQuestion asked = std::move(found->second);
  asked_.erase(found);
  const auto partition = parts_.partitions->find(asked.partition);
  if (partition == parts_.partitions->end()) return true;
  Partition& p = partition->second;
  if (!answer.status.ok()) {
    (void)turns_.judged(p.id(), answer.ticket, std::nullopt);
    return true;
  }
  const LogVerdict verdict = judge_mark(asked.known, answer.look);
  using Is = LogVerdict::LogMatch;
  const bool usable = verdict.is == Is::kSame ? verdict.newest || asked.believe_unknown
                                              : verdict.is == Is::kUnknown && asked.believe_unknown;
  // An answer that nobody waits for any more may be about a former log.
  if (!turns_.judged(p.id(), answer.ticket, usable, verdict.shown_by)) return true;
  p.log().set_cluster(answer.look.cluster);
  turns_.find(p.id())->marks.raise_oldest(answer.look.low);
  const std::int64_t next = p.next_offset().value_or(0);
  if (usable && verdict.newest) p.log().know(asked.log, next, verdict.newest);
  if (usable && !verdict.newest) p.log().assume(asked.log, next);
  if (usable && verdict.is == Is::kUnknown) parts_.questions->say_unverified(p, verdict);
  report_other_log(asked, verdict);
  return true;
}

void ShardRecovery::report_other_log(const LogQuestion& asked, const LogVerdict& verdict) {
  using Is = LogVerdict::LogMatch;
  if (verdict.is == Is::kUnproven) {
    parts_.report(
        LogLevel::kWarning,
        fmt::format("partition {}: a shard's mark, {}, may be about another log: {}; the mark "
                    "does not count",
                    asked.partition, asked.known.position, verdict.why));
  }
  if (verdict.is == Is::kAnother) {
    parts_.metrics->offset_resets.add();
    parts_.report(
        LogLevel::kError,
        fmt::format("partition {}: this is not the log that was read up to a shard's mark, {}: "
                    "{}; the mark does not count",
                    asked.partition, asked.known.position, verdict.why));
  }
}

}  // namespace fcap::updater
