// What a ReserveRun decides on one record.
#include <algorithm>

#include "checker/reserve_run.h"
#include "checker/verdicts.h"
#include "checker/write_terms.h"
#include "ledger/encode.h"
#include "ledger/encode_runs.h"

namespace fcap::checker {
namespace {

std::optional<ledger::Entry> entry_of(const ledger::Ledger& ledger, std::uint64_t campaign,
                                      std::uint32_t fingerprint) noexcept {
  for (const ledger::Run& run : ledger.runs()) {
    if (run.campaign != campaign || run.type != EventType::kImpression) continue;
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      if (ledger.fingerprints()[i] == fingerprint) return ledger.entry(run, i);
    }
  }
  return std::nullopt;
}

const ledger::Reservation* reservation_of(const ledger::Ledger& ledger, std::uint64_t campaign,
                                          std::uint32_t fingerprint) noexcept {
  for (const ledger::Reservation& reservation : ledger.reservations()) {
    const ledger::Entry& event = reservation.event;
    if (event.campaign == campaign && event.fingerprint == fingerprint &&
        event.type == EventType::kImpression) {
      return &reservation;
    }
  }
  return nullptr;
}

// Until the evaluator counts reservations itself.
void count_reservations(ledger::Ledger& ledger, Instant now) {
  const std::vector<ledger::Reservation> all(ledger.reservations().begin(),
                                             ledger.reservations().end());
  for (const ledger::Reservation& reservation : all) {
    const ledger::Entry& event = reservation.event;
    if (reservation.released || reservation.expires <= now ||
        event.time > now + std::chrono::minutes{5} ||
        ledger.contains(event.campaign, event.type, event.fingerprint)) {
      continue;
    }
    ledger.merge(event);
  }
}

}  // namespace

// False: the record cannot be read.
bool ReserveRun::decide_on(Scratch& scratch) {
  const std::string_view record = record_ ? std::string_view(*record_) : std::string_view{};
  if (parts_.judgement.decode(scratch, record) != Reason::kPassed) return false;
  bool any_open = false;
  for (Slot& slot : slots_) {
    take_held(scratch.ledger, slot);
    any_open = any_open || !slot.candidate;
  }
  if (any_open) fill(scratch);
  return true;
}

// What the record holds under the slot's event id: a candidate with its creative, or otherwise one
// of its campaign.
void ReserveRun::take_held(const ledger::Ledger& ledger, Slot& slot) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < question_.candidates.size(); ++i) {
    if (used_[i] || is_invalid(question_.candidates[i])) continue;
    const std::optional<Held> held = held_as(ledger, question_.candidates[i], slot.fingerprint);
    if (!held || (found && held->creative != question_.candidates[i].creative)) continue;
    found = i;
    slot.time = held->time;
    slot.expires = held->expires;
    if (held->creative == question_.candidates[i].creative) break;
  }
  if (!found) return;
  slot.candidate = found;
  used_[*found] = true;
  // record() turns what was only reserved into an event of the same time.
  if (kind_ == ReserveAsk::Kind::kRecord && slot.expires) {
    slot.is_new = true;
    slot.expires.reset();
    write(question_.candidates[*found], slot);
  }
}

std::optional<ReserveRun::Held> ReserveRun::held_as(const ledger::Ledger& ledger,
                                                    const rules::CandidateKey& candidate,
                                                    std::uint32_t fingerprint) const noexcept {
  if (const auto entry = entry_of(ledger, candidate.campaign, fingerprint)) {
    return Held{.time = entry->time, .creative = entry->creative};
  }
  const ledger::Reservation* const reserved =
      reservation_of(ledger, candidate.campaign, fingerprint);
  if (reserved == nullptr || reserved->released || reserved->expires <= question_.now) {
    return std::nullopt;
  }
  return Held{.time = reserved->event.time,
              .creative = reserved->event.creative,
              .expires = reserved->expires};
}

void ReserveRun::fill(Scratch& scratch) {
  reservations_ = live_reservations(scratch.ledger, question_.now);
  const std::size_t record_bytes = record_ ? record_->size() : 0;
  if (kind_ == ReserveAsk::Kind::kReserve) {
    stopped_by_ = refuse_record(terms_, record_bytes, reservations_);
  } else if (record_bytes > terms_.record_bytes_max) {
    stopped_by_ = ReserveReason::kTooLong;
  }
  if (stopped_by_ != ReserveReason::kDone) return;
  parts_.judgement.add_shown(scratch, question_.user, fingerprints_);
  count_reservations(scratch.ledger, question_.now);
  for (std::size_t i = 0; i < question_.candidates.size(); ++i) {
    if (used_[i] || is_invalid(question_.candidates[i])) continue;
    if (!try_candidate(scratch, i)) return;
  }
}

// Gives the candidate to the first open slot whose event id was not released for it. False: all
// slots are filled, or no more may be.
bool ReserveRun::try_candidate(Scratch& scratch, std::size_t candidate) {
  const rules::CandidateKey& key = question_.candidates[candidate];
  bool any_open = false;
  for (Slot& slot : slots_) {
    if (slot.candidate) continue;
    any_open = true;
    const auto* const reserved = reservation_of(scratch.ledger, key.campaign, slot.fingerprint);
    if (reserved != nullptr && reserved->released) {
      stopped_by_ = ReserveReason::kReleased;
      continue;
    }
    if (!passes(scratch, candidate)) return true;
    if (kind_ == ReserveAsk::Kind::kReserve && reservations_ >= kReservationsMax) {
      stopped_by_ = ReserveReason::kTooMany;
      return false;
    }
    const ledger::Entry shown = shown_now(scratch.ledger, key, slot.fingerprint, question_.now);
    slot.candidate = candidate;
    slot.is_new = true;
    slot.time = shown.time;
    if (kind_ == ReserveAsk::Kind::kReserve) slot.expires = shown.time + life_;
    used_[candidate] = true;
    ++reservations_;
    write(key, slot);
    scratch.ledger.merge(shown);
    return true;
  }
  return any_open;
}

bool ReserveRun::passes(Scratch& scratch, std::size_t candidate) {
  Verdict verdict;
  scratch.evaluator.evaluate(to_evaluate(scratch, question_),
                             std::span(&question_.candidates[candidate], 1),
                             std::span(&verdict, 1));
  if (verdict.allowed && verdict.complete) return true;
  if (refusal_.rule_id.empty()) refusal_ = verdict;
  stopped_by_ = verdict.allowed ? ReserveReason::kIncomplete : ReserveReason::kCapped;
  return false;
}

void ReserveRun::write(const rules::CandidateKey& candidate, const Slot& slot) {
  const ledger::Entry event{.time = slot.time,
                            .campaign = candidate.campaign,
                            .creative = candidate.creative,
                            .type = EventType::kImpression,
                            .fingerprint = slot.fingerprint};
  wrote_ = true;
  if (kind_ == ReserveAsk::Kind::kRecord) return ledger::append_entries({&event, 1}, desired_);
  ledger::format::append_reservation({.event = event, .expires = *slot.expires}, desired_);
}

}  // namespace fcap::checker
