// What a ReserveRun decides on one record: the decision itself is rules/reserve_decision.h's.
#include "rules/reserve_decision.h"

#include <algorithm>
#include <chrono>

#include "checker/reserve_run.h"
#include "checker/verdicts.h"
#include "checker/write_terms.h"
#include "ledger/encode.h"
#include "rules/page_decision.h"
#include "rules/reservation_state.h"

namespace fcap::checker {
namespace {

using rules::ReserveAnswer;

// Why a slot stays empty.
Reason reason_of_refusal(ReserveAnswer answer) noexcept {
  switch (answer) {
    case ReserveAnswer::kReleased:
      return Reason::kReleased;
    case ReserveAnswer::kOtherCreative:
      return Reason::kInvalid;
    case ReserveAnswer::kIncomplete:
      return Reason::kIncomplete;
    case ReserveAnswer::kLate:
      return Reason::kTimeout;
    default:
      return Reason::kCapped;
  }
}

}  // namespace

// False: the record cannot be read.
bool ReserveRun::decide_on(Scratch& scratch) {
  const std::string_view record = record_ ? std::string_view(*record_) : std::string_view{};
  if (parts_.judgement.decode(scratch, record) != Reason::kPassed) return false;
  reservations_ = rules::live_reservations(scratch.ledger, question_.now);
  parts_.judgement.add_shown(scratch, question_.user, fingerprints_);
  if (kind_ == ReserveAsk::Kind::kPick) {
    decide_picks(scratch);
  } else {
    decide_one(scratch);
  }
  return true;
}

void ReserveRun::decide_one(Scratch& scratch) {
  const rules::WantedEvent wanted{.candidate = question_.candidates.front(),
                                  .fingerprint = fingerprints_.front()};
  const rules::ReserveDecision decision =
      is_shown_ ? rules::decide_shown(scratch.ledger, wanted, question_.now)
                : rules::decide_reserve(scratch.evaluator, to_evaluate(scratch, question_), wanted);
  refusal_ = decision.verdict;
  fill(slots_.front(),
       {.candidate =
            rules::is_allowed(decision.answer) ? std::optional<std::size_t>(0) : std::nullopt,
        .answer = decision.answer,
        .time = decision.time,
        .expires = decision.expires});
}

void ReserveRun::decide_picks(Scratch& scratch) {
  const auto is_late = [this] { return std::chrono::steady_clock::now() >= deadline_; };
  const auto picks =
      rules::decide_picks(scratch.evaluator, scratch.ledger, to_evaluate(scratch, question_),
                          {.candidates = question_.candidates,
                           .fingerprints = fingerprints_,
                           .life = life_,
                           .is_late = is_late});
  // All are written, or none.
  const bool was_late = std::any_of(picks.begin(), picks.end(), [](const rules::SlotPick& pick) {
    return pick.answer == ReserveAnswer::kLate;
  });
  for (std::size_t i = 0; i < picks.size(); ++i) {
    if (!was_late || picks[i].answer != ReserveAnswer::kGranted) fill(slots_[i], picks[i]);
  }
}

void ReserveRun::fill(PageSlot& slot, const rules::SlotPick& pick) {
  if (!pick.candidate) {
    slot.held_by_other = rules::is_allowed(pick.answer);
    if (!slot.held_by_other) {
      stopped_by_ = reason_of_refusal(pick.answer);
      return;
    }
    slot.time = pick.time;
    slot.expires = pick.expires;
    return;
  }
  if (pick.answer == ReserveAnswer::kGranted) {
    if (const Reason refused = refuse_one_more(); refused != Reason::kPassed) {
      stopped_by_ = refused;
      return;
    }
    ++reservations_;
  }
  slot.candidate = pick.candidate;
  slot.time = pick.time;
  slot.expires = pick.expires;
  // HardCall::kRecord turns what was only reserved into an event of the same time.
  const bool records = kind_ == ReserveAsk::Kind::kRecord;
  slot.is_new =
      pick.answer == ReserveAnswer::kGranted || (records && pick.answer == ReserveAnswer::kHeld);
  if (!slot.is_new) return;
  slot.expires = records ? std::nullopt : std::optional(slot.time + life_);
  write(question_.candidates[*slot.candidate], slot);
}

// Whether the record has no room for what is to be written.
Reason ReserveRun::refuse_one_more() const noexcept {
  const std::size_t record_bytes = record_ ? record_->size() : 0;
  if (kind_ != ReserveAsk::Kind::kRecord) {
    return refuse_record(terms_, record_bytes, reservations_);
  }
  return record_bytes > terms_.record_bytes_max ? Reason::kTooLong : Reason::kPassed;
}

void ReserveRun::write(const rules::CandidateKey& candidate, const PageSlot& slot) {
  const ledger::Entry event{.time = slot.time,
                            .campaign = candidate.campaign,
                            .creative = candidate.creative,
                            .type = EventType::kImpression,
                            .fingerprint = slot.fingerprint};
  wrote_ = true;
  if (kind_ == ReserveAsk::Kind::kRecord) return ledger::append_entries({&event, 1}, desired_);
  ledger::append_reservation({.event = event, .expires = *slot.expires}, desired_);
}

}  // namespace fcap::checker
