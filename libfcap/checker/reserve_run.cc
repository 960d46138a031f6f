#include "checker/reserve_run.h"

#include <algorithm>

#include "checker/seen_record.h"
#include "checker/verdicts.h"
#include "checker/write_terms.h"
#include "ledger/encode.h"
#include "ledger/ids.h"
#include "ledger/user_key.h"

namespace fcap::checker {
namespace {

// How often a record is read for one call. Where many callers race for one user, each exchange lets
// at least one through.
constexpr int kTriesMax = 32;

// Whether the record or the call itself says no; otherwise nothing was decided.
bool is_decided(Reason reason) noexcept {
  return reason == Reason::kCapped || reason == Reason::kReleased || reason == Reason::kInvalid;
}

// How a write has ended.
Reason done_unless(Reason refused) noexcept {
  return refused == Reason::kPassed ? Reason::kDone : refused;
}

bool is_success(Reason reason) noexcept {
  return reason == Reason::kDone || reason == Reason::kRepeated;
}

ReserveAsk::Kind kind_of(HardCall call) noexcept {
  switch (call) {
    case HardCall::kReserve:
      return ReserveAsk::Kind::kReserve;
    case HardCall::kRelease:
      return ReserveAsk::Kind::kRelease;
    case HardCall::kRecord:
      break;
  }
  return ReserveAsk::Kind::kRecord;
}

}  // namespace

ReserveAsk ReserveAsk::of(const HardRequest& request, const HardOptions& options) noexcept {
  const Impression& impression = request.impression;
  return {.kind = kind_of(request.call),
          .user = impression.subject.user,
          .ranked = {&impression.candidate, 1},
          .event_ids = {&impression.event_id, 1},
          .after = &impression.after,
          .now = impression.at,
          .deadline = options.deadline,
          .segments = options.segments,
          .life = options.life,
          .allow_undecided = options.allow_undecided,
          .is_shown = options.shown};
}

ReserveAsk ReserveAsk::of(const PageRequest& page, const PageOptions& options) noexcept {
  return {.kind = Kind::kPick,
          .user = page.subject.user,
          .ranked = page.ranked,
          .event_ids = page.event_ids,
          .after = &page.after,
          .now = options.now,
          .deadline = options.deadline,
          .segments = options.segments,
          .life = options.life};
}

bool ReserveAsk::has_valid_ids() const noexcept {
  if (event_ids.size() > kSlotsMax) return false;
  for (std::size_t i = 0; i < event_ids.size(); ++i) {
    const auto others = event_ids.first(i);
    if (!ledger::is_id(event_ids[i])) return false;
    if (std::find(others.begin(), others.end(), event_ids[i]) != others.end()) return false;
  }
  return true;
}

void append_release(const ledger::Entry& event, std::string& out) {
  ledger::append_reservation({.event = event, .expires = event.time, .released = true}, out);
}

// kPassed: go on.
Reason ReserveRun::prepare(const ReserveAsk& ask) {
  for (const std::string_view id : ask.event_ids) {
    fingerprints_.push_back(ledger::fingerprint(id));
    slots_.push_back({.fingerprint = fingerprints_.back()});
  }
  Reason reason = parts_.gate.refuse_user(ask.user);
  if (reason != Reason::kPassed) return reason;
  if (!ask.has_valid_ids()) return Reason::kInvalid;
  reason = parts_.judgement.prepare(ask.user, ask.ranked,
                                    {.now = ask.now, .segments = ask.segments}, question_);
  if (reason != Reason::kPassed && !(is_shown_ && reason == Reason::kNoRules)) return reason;
  if (ask.ranked.size() == 1 && is_invalid(question_.candidates.front())) {
    return Reason::kInvalid;
  }
  terms_ = parts_.store.write_terms();
  life_ = std::min(ask.life.value_or(terms_.reservation_life_max), terms_.reservation_life_max);
  if (ask.life && ask.life->count() <= 0) return Reason::kInvalid;
  return refuse_writing(terms_, question_.now);
}

// A frame behind whatever the record holds, so that nothing needs to be read.
ReserveRun::ReserveStep ReserveRun::begin_release(const ReserveAsk& ask) {
  const Reason reason = parts_.gate.refuse_user(ask.user);
  if (reason != Reason::kPassed) return finish(reason);
  auto event = Judgement::event_of(ask.ranked.front(), ask.event_ids.front());
  if (!event) return finish(Reason::kInvalid);
  question_.now = parts_.judgement.instant_of({});
  const Reason refused = refuse_writing(parts_.store.write_terms(), question_.now);
  if (refused != Reason::kPassed) return finish(refused);
  parts_.judgement.forget_shown(ask.user, *event);
  event->time = question_.now;
  append_release(*event, desired_);
  ledger::user_key(parts_.options.key_prefix, ask.user, key_);
  return ReserveStep::kAppend;
}

ReserveRun::ReserveStep ReserveRun::begin(const ReserveAsk& ask, Store::Deadline deadline) {
  deadline_ = deadline;
  if (ask.kind == ReserveAsk::Kind::kRelease) return begin_release(ask);
  if (const Reason refused = prepare(ask); refused != Reason::kPassed) return finish(refused);
  if (slots_.empty()) return finish(Reason::kRepeated);
  if (question_.candidates.empty()) return finish(Reason::kCapped);
  ledger::user_key(parts_.options.key_prefix, ask.user, key_);
  const KeptRecord* const kept =
      ask.after == nullptr ? nullptr : SeenRecord::kept_in(*ask.after, ask.user);
  if (kept == nullptr) return ReserveStep::kRead;
  record_ = kept->bytes;
  return decide(false, false);
}

// The Checker's own store ends before it, with kUnavailable for whatever it still has.
Reason ReserveRun::reason_after(StoreCode code) const noexcept {
  if (code == StoreCode::kUnavailable && parts_.gate.closing()) return Reason::kShutdown;
  return reason_of(code);
}

ReserveRun::ReserveStep ReserveRun::on_read(StoreCode code, std::string_view record) {
  ++tries_;
  const Reason reason = reason_after(code);
  if (reason != Reason::kPassed) return finish(reason);
  const bool found = code == StoreCode::kOk;
  const bool changed = found != record_.has_value() || (found && *record_ != record);
  record_.reset();
  if (found) record_.emplace(record);
  return decide(true, changed);
}

ReserveRun::ReserveStep ReserveRun::on_exchange(StoreCode code) noexcept {
  switch (code) {
    case StoreCode::kOk:
      return finish(Reason::kDone);
    case StoreCode::kConflict:
      parts_.counters.add(CheckerCounter::hard_conflicts);
      return tries_ < kTriesMax ? ReserveStep::kRead : finish(Reason::kConflict);
    case StoreCode::kUnavailable:
      // The connection was lost; the record tells what has happened, if it can be read in time.
      maybe_written_ = true;
      return tries_ < kTriesMax ? ReserveStep::kRead : finish(reason_after(code));
    case StoreCode::kTimeout:
      maybe_written_ = true;
      return finish(Reason::kTimeout);
    default:
      return finish(done_unless(reason_after(code)));
  }
}

ReserveRun::ReserveStep ReserveRun::on_append(const StoreOutcome& outcome) noexcept {
  // Redis may have taken the bytes and refused only their expiry.
  maybe_written_ = outcome.code == StoreCode::kTimeout || outcome.code == StoreCode::kUnavailable ||
                   outcome.length_bytes != 0;
  return finish(done_unless(reason_after(outcome.code)));
}

void ReserveRun::cut_off(ReserveStep step, Reason reason) noexcept {
  maybe_written_ = maybe_written_ || step == ReserveStep::kExchange || step == ReserveStep::kAppend;
  fail(reason);
}

void ReserveRun::fail(Reason reason) noexcept {
  static_cast<void>(finish(reason));
}

void ReserveRun::start(ReserveStep step, Store& store, Store::Deadline deadline,
                       StoreCompletion& done) const noexcept {
  const Instant expire_at = question_.now + parts_.options.retention;
  if (step == ReserveStep::kRead) return store.get(key_, deadline, done);
  if (step == ReserveStep::kAppend)
    return store.append_note(key_, desired_, expire_at, deadline, done);
  Store::CompareAndSet change;
  change.key = key_;
  if (record_) change.expected = *record_;
  change.desired = desired_;
  change.expire_at = expire_at;
  store.compare_and_set(change, deadline, done);
}

ReserveRun::ReserveStep ReserveRun::next(ReserveStep done, const StoreOutcome& outcome) {
  switch (done) {
    case ReserveStep::kRead:
      return on_read(outcome.code, outcome.record);
    case ReserveStep::kExchange:
      return on_exchange(outcome.code);
    case ReserveStep::kAppend:
      return on_append(outcome);
    case ReserveStep::kDone:
      break;
  }
  return ReserveStep::kDone;
}

ReserveRun::ReserveStep ReserveRun::decide(bool is_fresh, bool changed) {
  for (PageSlot& slot : slots_) slot = {.fingerprint = slot.fingerprint};
  desired_ = record_.value_or(std::string{});
  wrote_ = false;
  stopped_by_ = Reason::kPassed;
  refusal_ = {};
  const ScratchPool::HeldScratch scratch(parts_.judgement.scratches());
  if (!decide_on(*scratch)) return finish(Reason::kUndecodable);
  // If the record has changed, an exchange that was cut off either shows in it or can no longer
  // succeed. If it is unchanged, that exchange may still be executed.
  if (changed) maybe_written_ = false;
  if (wrote_) return ReserveStep::kExchange;
  if (!is_fresh && stopped_by_ != Reason::kTimeout) return ReserveStep::kRead;
  const bool all_held = std::all_of(slots_.begin(), slots_.end(), [](const PageSlot& slot) {
    return slot.candidate.has_value() || slot.held_by_other;
  });
  if (all_held) return finish(Reason::kRepeated);
  return finish(stopped_by_);
}

ReserveRun::ReserveStep ReserveRun::finish(Reason reason) noexcept {
  unknown_ = maybe_written_ && !is_success(reason);
  reason_ = reason;
  parts_.counters.add_ended(reason, unknown_);
  return ReserveStep::kDone;
}

HardResult ReserveRun::result() const {
  HardResult result;
  result.reason = reason_;
  result.unknown = unknown_;
  result.time = question_.now;
  result.verdict = refusal_;
  result.rules = question_.held.rules;
  if (kind_ == ReserveAsk::Kind::kRelease) {
    result.allowed = is_success(reason_);
  } else if (is_success(reason_) && !slots_.empty() && slots_.front().candidate) {
    result.allowed = true;
    result.time = slots_.front().time;
    result.expires = slots_.front().expires;
  } else {
    result.allowed = allow_undecided_ && !is_decided(reason_);
  }
  return result;
}

PagePicks ReserveRun::picks() const noexcept {
  PagePicks picks;
  picks.reason = reason_;
  picks.unknown = unknown_;
  try {
    picks.picks.resize(slot_count_);
  } catch (...) {  // no memory
    picks.reason = Reason::kOverloaded;
    picks.unknown = true;
    return picks;
  }
  if (unknown_) return picks;
  const bool wrote = is_success(reason_);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const PageSlot& slot = slots_[i];
    const bool is_there = slot.held_by_other || (slot.candidate && (!slot.is_new || wrote));
    if (!is_there) continue;
    picks.picks[i] = {.candidate = slot.candidate,
                      .time = slot.time,
                      .expires = slot.expires,
                      .held_by_other = slot.held_by_other};
  }
  return picks;
}

}  // namespace fcap::checker
