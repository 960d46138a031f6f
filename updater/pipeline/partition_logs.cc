// Whether the partitions' logs are the ones that were read.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "updater/pipeline/partition_set.h"

namespace fcap::updater {

void PartitionSet::suspect_logs() {
  for (auto& [id, p] : partitions_) p.log.suspect();
}

void PartitionSet::settle_start(std::int32_t id, Partition& p, const LogBounds& bounds,
                                const LogVerdict& log) {
  using Is = LogVerdict::LogMatch;
  const std::optional<std::int64_t> committed = bounds.committed;
  const bool believed = !doubts_.contains(id) && log.is != Is::kUnproven;
  const std::optional<Claim> found = believed ? claim_of(p.mark->found()) : std::nullopt;
  Start start = decide_start(committed, position_of(found), log.newest.has_value());
  if (log.is == Is::kAnother) start = {true, 0};
  Recovery plan{start.offset, {}};
  if (!start.retention_start) {
    plan.gaps = found->gaps;
    if (committed && *committed > found->position) {
      plan = plan_recovery(*found, *committed, *committed, options_.gap_min);
      metrics_->rewinds.add();
      metrics_->rewound_messages.add(static_cast<std::uint64_t>(*committed - plan.read_from));
    }
    report_start(id, p, committed, plan);
  } else {
    plan.read_from = bounds.retention_start;
    // The committed offset says nothing about another log.
    if (committed && !found && log.is != Is::kAnother) {
      plan = plan_recovery({bounds.retention_start, {}}, *committed, *committed, options_.gap_min);
      // If no gap is planned, reading begins at the first message that exists, also where the
      // committed offset lies before it because what was between has expired.
      plan.read_from = plan.gaps.empty() ? bounds.retention_start : plan.read_from;
    }
    if (committed) metrics_->mark_losses.add();
    if (committed && !p.mark->found()) marks_gone_ = SlotSet::all();
    const bool lost = committed && (!p.mark->found() || doubts_.contains(id));
    // If this is another log, nothing was lost: the events of the former one are still in Redis.
    if (lost && log.is != LogVerdict::LogMatch::kAnother)
      note_log_start(id, bounds, SlotSet::all());
    report_retention_start(id, p, committed, log, bounds.retention_start);
  }
  p.mark->accept_found();
  p.reconnected = false;
  p.commit_sent = committed;
  const std::string cluster = p.log.cluster();
  p.log.forget();
  place(p, plan.read_from);
  p.gaps = plan.gaps;
  if (!start.retention_start && log.is == Is::kSame) {
    p.log.begin(p.mark->found()->log, plan.read_from, log.newest);
  } else if (!start.retention_start) {
    // The message that the mark names is gone. The next marks go on naming it, because a mark that
    // names none proves nothing.
    p.log.assume(p.mark->found()->log, plan.read_from);
  }
  p.log.set_cluster(cluster);
  if (!start.retention_start && log.is == Is::kUnknown) say_unverified(id, p, log);
  // The mark of another log must not be above this one's offsets.
  p.mark_may_fall = start.retention_start;
  p.phase = PartitionPhase::kConfirming;
}

void PartitionSet::report_start(std::int32_t id, const Partition& p,
                                std::optional<std::int64_t> committed, const Recovery& plan) const {
  std::string text =
      fmt::format("partition {}: mark {}, committed {}; reading from {}", id,
                  describe(claim_of(p.mark->found())), describe(committed), plan.read_from);
  if (!plan.gaps.empty()) {
    fmt::format_to(std::back_inserter(text), ", and {} offsets before it meanwhile",
                   offsets_in(plan.gaps));
  }
  report(LogLevel::kInfo, text);
}

void PartitionSet::report_retention_start(std::int32_t id, const Partition& p,
                                          std::optional<std::int64_t> committed,
                                          const LogVerdict& log, std::int64_t offset) {
  const Mark::Value& mark = p.mark->found();
  if (!mark) {
    report(committed ? LogLevel::kWarning : LogLevel::kInfo,
           fmt::format("partition {}: no mark in Redis (committed: {}); reading from the start of "
                       "retention, offset {}",
                       id, describe(committed), offset));
    return;
  }
  if (doubts_.contains(id) && log.is != LogVerdict::LogMatch::kAnother) {
    report(LogLevel::kWarning,
           fmt::format("partition {}: records may be missing below its mark, {}; reading from the "
                       "start of retention, offset {}",
                       id, mark->position, offset));
    return;
  }
  if (log.is == LogVerdict::LogMatch::kUnproven) {
    report(LogLevel::kWarning,
           fmt::format("partition {}: its mark, {}, may be about another log: {}; reading from the "
                       "start of retention, offset {}",
                       id, mark->position, log.why, offset));
    return;
  }
  metrics_->offset_resets.add();
  if (log.is == LogVerdict::LogMatch::kAnother) {
    report(LogLevel::kError,
           fmt::format("partition {}: this is not the log that was read up to the mark, {}: {}; "
                       "reading from the start of retention, offset {}",
                       id, mark->position, log.why, offset));
    return;
  }
  report(LogLevel::kWarning,
         fmt::format("partition {}: mark {}, but the group has committed no offset: the topic was "
                     "recreated, this is another cluster, or the offsets have expired; reading "
                     "from the start of retention, offset {}",
                     id, describe(claim_of(mark)), offset));
}

bool PartitionSet::mark_look_done(std::int32_t id, Partition& p) {
  if (p.mark_verdict) return true;
  const Mark::Value& found = p.mark->found();
  if (!logs_matter_ || !found) {
    p.mark_verdict.emplace();
    return true;
  }
  p.phase = PartitionPhase::kAsking;
  if (p.mark_look || looks_ == nullptr) return false;
  p.mark_look = LogWatch::StartedLook{
      0, KnownLog{found->log.cluster, points_of(found->log), found->position}};
  ask_for_look(id, *p.mark_look);
  return false;
}

void PartitionSet::ask_for_look(std::int32_t id, LogWatch::StartedLook& look) {
  LogLooks::LookQuestion question{.partition = id, .ticket = ++looks_asked_};
  for (const LogPoint& point : look.known.points) question.offsets.push_back(point.offset);
  look.ticket = question.ticket;
  looks_->ask(std::move(question));
}

void PartitionSet::look_if_due(std::int32_t id, Partition& p, Clock::time_point now) {
  const bool under_way = p.log.look && p.log.look->ticket != 0;
  if (looks_ == nullptr || under_way || now < p.log.due || now < p.log.not_before) return;
  // A look that failed is repeated, for the same messages.
  if (!p.log.look) {
    // A mark that was found, and believed, may be ahead of what was read since.
    std::int64_t reached = p.tracker.next_offset().value_or(0);
    if (p.mark.exists() && p.mark->confirmed() && !p.mark_may_fall) {
      reached = std::max(reached, p.mark->confirmed()->position);
    }
    p.log.start_look(reached);
  }
  p.log.due = now + options_.log_interval;
  p.log.not_before = now + options_.log_interval_min;
  ask_for_look(id, *p.log.look);
}

void PartitionSet::take_looks(Clock::time_point now) {
  if (looks_ == nullptr) return;
  while (const auto answer = looks_->take()) {
    if (take_other_look(*answer)) continue;
    Partition* p = find(answer->partition);
    if (p == nullptr) continue;
    if (p->mark_look && p->mark_look->ticket == answer->ticket) {
      take_mark_look(answer->partition, *p, *answer, now);
    } else if (p->log.look && p->log.look->ticket == answer->ticket) {
      take_look(answer->partition, *p, *answer, now);
    }
  }
}

void PartitionSet::take_mark_look(std::int32_t id, Partition& p, const LogLooks::LookAnswer& answer,
                                  Clock::time_point now) {
  const LogWatch::StartedLook look = *std::exchange(p.mark_look, std::nullopt);
  if (answer.status.ok()) {
    p.mark_verdict = judge_mark(look.known, answer.look);
    p.log.set_cluster(answer.look.cluster);
    return;
  }
  p.phase = PartitionPhase::kChecking;
  failed(id, p, now, "cannot verify its log: " + answer.status.text());
}

void PartitionSet::take_look(std::int32_t id, Partition& p, const LogLooks::LookAnswer& answer,
                             Clock::time_point now) {
  if (!answer.status.ok()) {
    p.log.look->ticket = 0;
    p.log.due = now;
    return;
  }
  const LogVerdict verdict = judge_log(p.log.look->known, answer.look);
  p.log.end_look(verdict);
  p.log.set_cluster(answer.look.cluster);
  if (verdict.is == LogVerdict::LogMatch::kUnknown) say_unverified(id, p, verdict);
  if (verdict.is != LogVerdict::LogMatch::kAnother) return;
  p.other_log = verdict.why;
  // Kafka must say where the other log begins. A check that is in progress ends in finish_check(),
  // which asks for it too.
  if (p.phase != PartitionPhase::kChecking) p.phase = PartitionPhase::kAsking;
}

void PartitionSet::follow_other_log(std::int32_t id, Partition& p, std::int64_t start) {
  metrics_->offset_resets.add();
  report(LogLevel::kError,
         fmt::format("partition {}: this is no longer the log that was read: {}; reading from the "
                     "start of retention, offset {}",
                     id, *p.other_log, start));
  p.other_log.reset();
  const std::string cluster = p.log.cluster();
  close_range(id, p);
  p.log.forget();
  place(p, start);
  p.gaps.clear();
  p.log.set_cluster(cluster);
  // The mark must fall before anything is read: what it says is true of the former log only.
  p.mark_may_fall = true;
  p.phase = PartitionPhase::kConfirming;
}

void PartitionSet::say_unverified(std::int32_t id, Partition& p, const LogVerdict& verdict) {
  if (p.log.said_unverified) return;
  p.log.said_unverified = true;
  metrics_->log_unverified.add();
  report(LogLevel::kWarning,
         fmt::format(
             "partition {}: assuming that this is the log that was read before; unverified: {}", id,
             verdict.why));
}

MarkValue PartitionSet::value_of_mark(Partition& p, std::int64_t position) {
  const Mark::Value& confirmed = p.mark->confirmed();
  Gaps gaps = gaps_to_mark(p, position);
  // After a restart below it, the mark is ahead of what is done: only its gaps may change.
  if (confirmed && position > p.done_below() && confirmed->position == position) {
    return {.position = position, .log = confirmed->log, .gaps = std::move(gaps)};
  }
  return {.position = position, .log = p.log.identity(position), .gaps = std::move(gaps)};
}

}  // namespace fcap::updater
