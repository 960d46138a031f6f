#include "updater/pipeline/mark_recovery.h"

#include <algorithm>
#include <thread>

#include "updater/pipeline/recovery_texts.h"
#include "updater/process/invariant.h"

namespace fcap::updater {
namespace {

constexpr std::chrono::milliseconds kWaitStep{1};
// The newest event that a mark vouches for may be a little ahead of the clock.
constexpr std::chrono::hours kMarkOutlives{1};

}  // namespace

MarkRecovery::MarkRecovery(RecoveryParts parts, Store& store, Epoch epoch)
    : parts_(std::move(parts)), store_(&store), epoch_(std::move(epoch)) {}

MarkRecovery::~MarkRecovery() {
  for (auto& [id, m] : marked_) retire(std::move(m.mark));
  // Ends: every store operation completes by its deadline.
  for (drop_retired(); !retired_.empty(); drop_retired()) std::this_thread::sleep_for(kWaitStep);
}

void MarkRecovery::retire(std::unique_ptr<Mark> mark) {
  if (mark->busy()) retired_.push_back(std::move(mark));
}

void MarkRecovery::drop_retired() {
  std::erase_if(retired_, [](const auto& mark) {
    (void)mark->poll(false);
    return !mark->busy();
  });
}

// --- Assignment.

void MarkRecovery::assigned(std::span<const PartitionOffset> partitions) {
  std::vector<std::int32_t> asked;
  for (const PartitionOffset& at : partitions) {
    const std::int32_t id = at.partition;
    MarkedPartition& m =
        marked_
            .try_emplace(id, *store_,
                         mark_key(parts_.options.key_prefix, parts_.options.group_id,
                                  parts_.options.topic, id),
                         !parts_.options.gap_min)
            .first->second;
    start_check(parts_.partitions->at(id), m);
    asked.push_back(id);
  }
  parts_.questions->ask_bounds(asked);
  await_answers(partitions);
  const Clock::time_point now = Clock::now();
  for (const std::int32_t id : asked) {
    MarkedPartition& m = marked_.at(id);
    after_mark(parts_.partitions->at(id), m, m.mark->poll(true), now);
  }
  await_looks(partitions);
  for (const std::int32_t id : asked) {
    Partition& p = parts_.partitions->at(id);
    MarkedPartition& m = marked_.at(id);
    if (p.phase() == PartitionPhase::kAsking && m.verdict) finish_check(p, m, now);
  }
}

void MarkRecovery::await_answers(std::span<const PartitionOffset> partitions) {
  const Clock::time_point until = Clock::now() + parts_.options.deadline;
  const auto answered = [this](const PartitionOffset& at) {
    return !marked_.at(at.partition).mark->running() &&
           parts_.questions->bounds_answered(at.partition);
  };
  while (!std::ranges::all_of(partitions, answered) && Clock::now() < until) {
    std::this_thread::sleep_for(kWaitStep);
  }
}

void MarkRecovery::await_looks(std::span<const PartitionOffset> partitions) {
  const Clock::time_point until = Clock::now() + parts_.options.deadline;
  const auto looks = [this](const PartitionOffset& at) {
    return marked_.at(at.partition).look.has_value();
  };
  take_looks(Clock::now());
  while (std::ranges::any_of(partitions, looks) && Clock::now() < until) {
    std::this_thread::sleep_for(kWaitStep);
    take_looks(Clock::now());
  }
}

void MarkRecovery::revoking(std::span<const PartitionOffset> partitions) {
  for (const PartitionOffset& at : partitions) {
    const auto found = marked_.find(at.partition);
    if (found == marked_.end()) continue;
    retire(std::move(found->second.mark));
    marked_.erase(found);
  }
}

// --- Comparing the mark.

void MarkRecovery::start_check(Partition& p, MarkedPartition& m) {
  p.wait_in(PartitionPhase::kChecking);
  p.check().again_at = {};
  p.check().bounds.reset();
  // An answer that nobody has taken is about what was asked then.
  if (p.positioned()) p.check().query = Partition::PartitionCheck::OffsetQuery::kNo;
  p.check().looks_at_mark = false;
  m.due = {};
  m.look.reset();
  m.verdict.reset();
  const std::uint64_t epoch = epoch_();
  // Pieces under way were written over other connections in part, perhaps to a server that is
  // gone.
  if (m.epoch != epoch) m.gaps_generation = ++gaps_generations_;
  m.reconnected = m.reconnected || m.epoch != epoch;
  m.epoch = epoch;
  if (m.mark->busy()) return;  // its outcome leads here again
  m.operation_epoch = epoch;
  m.mark->read(Clock::now() + parts_.options.deadline);
}

void MarkRecovery::place(Partition& p, MarkedPartition& m, std::int64_t offset) {
  p.begin(offset);
  m.reading_begins(offset, ++gaps_generations_);
}

void MarkRecovery::finish_check(Partition& p, MarkedPartition& m, Clock::time_point now) {
  Partition::PartitionCheck& check = p.check();
  if (!p.positioned()) {
    if (!check.bounds) check.bounds = parts_.questions->bounds_of(p, now);
    if (!check.bounds) return;
    if (!mark_look_done(p, m)) return parts_.troubles->await_kafka(p, now);
    PartitionTroubles::heard_kafka(p);
    return settle_start(p, m, *check.bounds, *m.verdict);
  }
  if (check.other_log) {
    const auto bounds = parts_.questions->bounds_of(p, now);
    if (!bounds) return;
    PartitionTroubles::heard_kafka(p);
    parts_.questions->begin_other_log(p, bounds->retention_start, p.has_taken() ? stamp(p) : 0);
    m.reading_begins(bounds->retention_start, ++gaps_generations_);
    m.gaps.clear();
    m.may_fall = true;
    return;
  }
  // A mark that this process has not written may be a restored one, of a log that no longer exists.
  const bool ours = m.found_ours();
  if (!ours && !mark_look_done(p, m)) return parts_.troubles->await_kafka(p, now);
  using Is = LogVerdict::LogMatch;
  const bool of_another =
      !ours && (m.verdict->is == Is::kAnother || m.verdict->is == Is::kUnproven);
  const MarkCheck marks{m.claimed(), m.claim_of(m.mark->attempted()), m.reconnected};
  Rewind rewind = decide_rewind(marks, of_another ? std::nullopt : m.claim_of(m.mark->found()));
  // The mark in Redis was to fall: it claims too much, or is about another log. And what was
  // written since that was found out may have gone to a server that is gone. So nothing is certain.
  const bool distrusted = ours && m.reconnected && m.may_fall;
  if (doubts_.contains(p.id()) || distrusted) rewind = {Rewind::To::kRetentionStart, {}, true};
  if (rewind.to == Rewind::To::kRetentionStart) {
    const auto bounds = parts_.questions->bounds_of(p, now);
    if (!bounds) return;
    rewind.certain = {bounds->retention_start, {}};
    if (m.mark->confirmed()) parts_.expired->lost(p.id(), *bounds, SlotSet::all());
  }
  PartitionTroubles::heard_kafka(p);
  if (rewind.to != Rewind::To::kNowhere) recover(p, m, rewind);
  m.may_fall = m.may_fall || of_another;
  m.mark->accept_found();
  m.reconnected = false;
  p.wait_in(PartitionPhase::kConfirming);
}

void MarkRecovery::recover(Partition& p, MarkedPartition& m, const Rewind& rewind) {
  const std::int64_t next = p.next_offset().value_or(rewind.certain.position);
  const std::int64_t done = p.done_below().value_or(next);
  const RecoveryPlan plan = plan_recovery(rewind.certain, done, next, parts_.options.gap_min);
  m.may_fall = m.may_fall || rewind.lower_mark;
  const bool is_claim = rewind.to == Rewind::To::kClaim;
  const bool keeps_reading = is_claim && rewind.certain.position >= next;
  // The next mark replaces this one, and must name messages that identify the log at least as well.
  if (keeps_reading) m.know_by_found(p, next);
  if (keeps_reading && plan.gaps.empty()) {
    m.gaps_generation = ++gaps_generations_;
    m.gaps.clear();
    m.sure_from = next;
    return;
  }
  if (m.mark->found() != m.mark->confirmed()) parts_.metrics->mark_losses.add();
  if (!m.mark->found() && m.mark->confirmed()) marks_gone_ = SlotSet::all();
  parts_.report(LogLevel::kWarning, text_of_recovery(p.id(), m, plan, next));
  if (keeps_reading) {
    // Offsets that are being processed are in no gap, or above sure_from.
    m.gaps_generation = ++gaps_generations_;
    m.sure_from = next;
  } else {
    parts_.metrics->rewinds.add();
    parts_.metrics->rewound_messages.add(static_cast<std::uint64_t>(next - plan.read_from));
    place(p, m, plan.read_from);
    if (is_claim) m.know_by_found(p, plan.read_from);
  }
  m.gaps = plan.gaps;
}

void MarkRecovery::doubt_all() {
  for (auto& [id, m] : marked_) {
    doubts_.insert(id);
    start_check(parts_.partitions->at(id), m);
  }
}

void MarkRecovery::fell(const Partition& p) {
  MarkedPartition& m = marked_.at(p.id());
  m.reading_begins(p.began_at(), ++gaps_generations_);
  m.may_fall = true;
}

// --- Where reading begins.

void MarkRecovery::settle_start(Partition& p, MarkedPartition& m, const LogBounds& bounds,
                                const LogVerdict& log) {
  using Is = LogVerdict::LogMatch;
  const bool believed = !doubts_.contains(p.id()) && log.is != Is::kUnproven;
  const std::optional<Claim> found = believed ? m.claim_of(m.mark->found()) : std::nullopt;
  Start start = decide_start(bounds.committed, position_of(found), log.newest.has_value());
  if (log.is == Is::kAnother) start = {true, 0};
  const RecoveryPlan plan = start.retention_start
                                ? begin_at_retention_start(p, m, bounds, log, found.has_value())
                                : begin_by_mark(p, m, bounds, *found, start.offset);
  m.mark->accept_found();
  m.reconnected = false;
  p.set_committed(bounds.committed);
  const std::string cluster = p.log().cluster();
  p.log().forget();
  place(p, m, plan.read_from);
  m.gaps = plan.gaps;
  if (!start.retention_start && log.is == Is::kSame) {
    p.log().begin(m.mark->found()->log, plan.read_from, log.newest);
  } else if (!start.retention_start) {
    // The message that the mark names is gone. The next marks go on naming it, because a mark that
    // names none proves nothing.
    p.log().assume(m.mark->found()->log, plan.read_from);
  }
  p.log().set_cluster(cluster);
  if (!start.retention_start && log.is == Is::kUnknown) parts_.questions->say_unverified(p, log);
  // The mark of another log must not be above this one's offsets.
  m.may_fall = start.retention_start;
  p.wait_in(PartitionPhase::kConfirming);
}

// By its mark.
RecoveryPlan MarkRecovery::begin_by_mark(const Partition& p, const MarkedPartition& m,
                                         const LogBounds& bounds, const Claim& found,
                                         std::int64_t offset) {
  const std::optional<std::int64_t> committed = bounds.committed;
  RecoveryPlan plan{offset, found.gaps};
  if (committed && *committed > found.position) {
    plan = plan_recovery(found, *committed, *committed, parts_.options.gap_min);
    parts_.metrics->rewinds.add();
    parts_.metrics->rewound_messages.add(static_cast<std::uint64_t>(*committed - plan.read_from));
  }
  parts_.report(LogLevel::kInfo, text_of_start(p.id(), m, committed, plan));
  return plan;
}

// At the start of the retention, because there is no mark or it cannot be believed.
RecoveryPlan MarkRecovery::begin_at_retention_start(const Partition& p, const MarkedPartition& m,
                                                    const LogBounds& bounds, const LogVerdict& log,
                                                    bool believed) {
  using Is = LogVerdict::LogMatch;
  const std::optional<std::int64_t> committed = bounds.committed;
  const bool marked = m.mark->found().has_value();
  const bool doubted = doubts_.contains(p.id());
  RecoveryPlan plan{bounds.retention_start, {}};
  // The committed offset says nothing about another log.
  if (committed && !believed && log.is != Is::kAnother) {
    plan =
        plan_recovery({bounds.retention_start, {}}, *committed, *committed, parts_.options.gap_min);
    // If no gap is planned, reading begins at the first message that exists, also where the
    // committed offset lies before it because what was between has expired.
    plan.read_from = plan.gaps.empty() ? bounds.retention_start : plan.read_from;
  }
  if (committed) parts_.metrics->mark_losses.add();
  if (committed && !marked) marks_gone_ = SlotSet::all();
  // If this is another log, nothing was lost: the events of the former one are still in Redis.
  const bool lost = committed && (!marked || doubted);
  if (lost && log.is != Is::kAnother) parts_.expired->lost(p.id(), bounds, SlotSet::all());
  if (!marked) {
    parts_.report(committed ? LogLevel::kWarning : LogLevel::kInfo,
                  text_of_no_mark(p.id(), committed, bounds.retention_start));
    return plan;
  }
  const UnbelievedMark why = why_unbelieved(p.id(), m, log, doubted, bounds.retention_start);
  if (why.is_other_log) parts_.metrics->offset_resets.add();
  parts_.report(why.level, why.text);
  return plan;
}

// --- Whether the mark found is about this log.

bool MarkRecovery::mark_look_done(Partition& p, MarkedPartition& m) {
  if (m.verdict) return true;
  const Mark::Value& found = m.mark->found();
  if (!parts_.questions->logs_matter() || !found) {
    m.verdict.emplace();
    return true;
  }
  p.wait_in(PartitionPhase::kAsking);
  if (m.look || !parts_.questions->can_look()) return false;
  m.look = LogWatch::StartedLook{
      0, KnownLog{found->log.cluster, points_of(found->log), found->position}};
  m.look->ticket = parts_.questions->look_for(p.id(), m.look->known);
  p.check().looks_at_mark = true;
  return false;
}

void MarkRecovery::take_looks(Clock::time_point now) {
  parts_.questions->take_looks(
      now, [&](const LogLooks::LookAnswer& answer) { return take_mark_look(answer, now); });
}

bool MarkRecovery::take_mark_look(const LogLooks::LookAnswer& answer, Clock::time_point now) {
  const auto found = marked_.find(answer.partition);
  if (found == marked_.end()) return false;
  MarkedPartition& m = found->second;
  if (!m.look || m.look->ticket != answer.ticket) return false;
  Partition& p = parts_.partitions->at(answer.partition);
  const LogWatch::StartedLook look = *std::exchange(m.look, std::nullopt);
  p.check().looks_at_mark = false;
  if (answer.status.ok()) {
    m.verdict = judge_mark(look.known, answer.look);
    p.log().set_cluster(answer.look.cluster);
    return true;
  }
  p.wait_in(PartitionPhase::kChecking);
  parts_.troubles->failed(p, now, "cannot verify its log: " + answer.status.text());
  return true;
}

// --- Turns.

void MarkRecovery::tick(Clock::time_point now, Instant wall_now, bool hurry) {
  take_looks(now);
  for (auto& [id, m] : marked_) tick_partition(parts_.partitions->at(id), m, now, wall_now, hurry);
  parts_.questions->send();
  drop_retired();
}

void MarkRecovery::tick_partition(Partition& p, MarkedPartition& m, Clock::time_point now,
                                  Instant wall_now, bool hurry) {
  // An answer from before a reconnection says nothing about the present server.
  after_mark(p, m, m.mark->poll(m.operation_epoch == epoch_()), now);
  if (p.phase() != PartitionPhase::kChecking && m.epoch != epoch_()) start_check(p, m);
  if (p.positioned()) {
    // A mark that was found, and believed, may be ahead of what was read since.
    std::int64_t reached = p.next_offset().value_or(0);
    if (m.mark->confirmed() && !m.may_fall) {
      reached = std::max(reached, m.mark->confirmed()->position);
    }
    parts_.questions->look_if_due(p, reached, now);
  }
  parts_.questions->judge_jump(p, now);
  if (m.mark->busy()) return;
  if (p.phase() == PartitionPhase::kAsking) finish_check(p, m, now);
  if (p.phase() == PartitionPhase::kChecking && now >= p.check().again_at) start_check(p, m);
  if (p.phase() <= PartitionPhase::kAsking) return;
  m.count_done(p);
  const std::int64_t wanted =
      mark_to_write(p.done_below().value_or(0), position_of(m.claimed()), m.may_fall);
  if (p.phase() == PartitionPhase::kConfirming) return write_mark(p, m, wanted, now, wall_now);
  const bool moved = m.mark_moved(wanted);
  if (now < m.due && !(hurry && moved)) return;
  if (!moved && m.due + (parts_.options.idle_interval - parts_.options.interval) > now) return;
  write_mark(p, m, wanted, now, wall_now);
}

void MarkRecovery::write_mark(Partition& p, MarkedPartition& m, std::int64_t offset,
                              Clock::time_point now, Instant wall_now) {
  const auto claimed = position_of(m.claimed());
  must_hold(offset <= p.done_below().value_or(0) || offset == claimed,
            "a mark names no offset beyond what was acknowledged");
  must_hold(m.may_fall || offset >= claimed.value_or(0),
            "a mark falls only where something was lost");
  m.due = now + parts_.options.interval;
  m.write_begun = now;
  // If another server is reached by now whose mark was not compared yet, it must not get this one:
  // it may lack the events that the mark vouches for.
  m.operation_epoch = m.epoch;
  m.mark->write(m.value_of_mark(p, offset), wall_now + parts_.options.retention + kMarkOutlives,
                now + parts_.options.deadline, m.epoch);
}

void MarkRecovery::after_mark(Partition& p, MarkedPartition& m, Mark::MarkOutcome outcome,
                              Clock::time_point now) {
  switch (outcome) {
    case Mark::MarkOutcome::kNothing:
      return;
    case Mark::MarkOutcome::kRead:
      if (!m.mark->key_of_no_mark().empty() && !std::exchange(m.no_mark_said, true)) {
        parts_.report(LogLevel::kWarning, no_mark_text(m.mark->key_of_no_mark()));
      }
      if (p.phase() != PartitionPhase::kChecking) return;
      // If the store was reconnected during the read, it is read once more.
      if (m.epoch == epoch_() || !p.positioned()) finish_check(p, m, now);
      return;
    case Mark::MarkOutcome::kReadFailed:
      PartitionTroubles::heard_kafka(p);  // it is Redis that it waits for now
      parts_.troubles->failed(p, now, "the mark cannot be read: " + m.mark->failure());
      return;
    case Mark::MarkOutcome::kWritten:
      return after_write(p, m);
    case Mark::MarkOutcome::kConflict:
      start_check(p, m);
      return;
    case Mark::MarkOutcome::kUnknown:
      p.wait_in(PartitionPhase::kChecking);
      parts_.troubles->failed(p, now, "the mark cannot be written: " + m.mark->failure());
      return;
  }
}

void MarkRecovery::after_write(Partition& p, MarkedPartition& m) {
  parts_.troubles->recovered(p, false);
  m.compared = m.write_begun;
  // A write that was started before the mark was to fall has not lowered it.
  if (m.mark_says_all() && position_of(m.claimed()) <= p.done_below()) m.may_fall = false;
  if (p.phase() == PartitionPhase::kConfirming && !m.may_fall && m.mark_says_all()) {
    doubts_.erase(p.id());
    p.let_read();
  }
  parts_.metrics->marks_written.add();
}

bool MarkRecovery::settled() const {
  return std::ranges::all_of(marked_, [this](const auto& it) {
    const Partition& p = parts_.partitions->at(it.first);
    const MarkedPartition& m = it.second;
    if (p.phase() <= PartitionPhase::kConfirming) return true;  // not available yet
    const auto written = position_of(m.claimed());
    return !m.mark->busy() && written >= p.done_below().value_or(0) && !m.mark_moved(*written);
  });
}

std::uint64_t MarkRecovery::stamp(const Partition& p) const {
  must_hold(marked_.at(p.id()).mark->confirmed().has_value(),
            "a partition is read only while Redis holds a mark of it");
  return 0;
}

}  // namespace fcap::updater
