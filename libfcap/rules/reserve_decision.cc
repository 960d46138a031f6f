#include "rules/reserve_decision.h"

#include <algorithm>

#include "rules/reservation_state.h"

namespace fcap::rules {
namespace {

constexpr std::uint64_t kCampaignMax = (std::uint64_t{1} << 48) - 1;

// What the ledger knows of an event already; nothing where it is to be evaluated.
std::optional<ReserveDecision> known_decision(const ledger::Ledger& ledger,
                                              const WantedEvent& wanted, Instant now) {
  const std::uint64_t campaign = wanted.candidate.campaign;
  if (const auto entry = ledger.find(campaign, wanted.type, wanted.fingerprint)) {
    return ReserveDecision{.answer = ReserveAnswer::kConfirmed, .time = ledger.times()[*entry]};
  }
  const ledger::Reservation* held =
      ledger.find_reservation(campaign, wanted.type, wanted.fingerprint);
  if (held == nullptr) return std::nullopt;
  if (held->released) {
    return ReserveDecision{.answer = ReserveAnswer::kReleased, .time = held->event.time};
  }
  if (held->expires <= now) return std::nullopt;
  return ReserveDecision{
      .answer = ReserveAnswer::kHeld, .time = held->event.time, .expires = held->expires};
}

ReserveAnswer answer_of(const Verdict& verdict) noexcept {
  if (!verdict.allowed) return ReserveAnswer::kCapped;
  return verdict.complete ? ReserveAnswer::kGranted : ReserveAnswer::kIncomplete;
}

// Gives slots their picks.
class Picking {
 public:
  Picking(Evaluator& evaluator, ledger::Ledger& ledger, const Evaluator::Question& question,
          const WantedPicks& wanted, std::vector<ledger::Reservation>& to_write)
      : evaluator_(evaluator),
        ledger_(ledger),
        question_(question),
        wanted_(wanted),
        to_write_(to_write),
        is_out_(wanted.candidates.size()),
        slots_(wanted.fingerprints.size()) {
    for (std::size_t i = 0; i < is_out_.size(); ++i) {
      is_out_[i] = wanted.candidates[i].campaign > kCampaignMax;
    }
  }

  std::vector<SlotPick> run() {
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) find_held(slot);
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (!slots_[slot].candidate) fill(slot);
    }
    return std::move(slots_);
  }

 private:
  [[nodiscard]] WantedEvent event_of(std::size_t slot, std::size_t candidate) const noexcept {
    return {.candidate = wanted_.candidates[candidate], .fingerprint = wanted_.fingerprints[slot]};
  }

  // A campaign may be a candidate with several creatives: the one that is held comes first.
  void find_held(std::size_t slot) {
    for (const bool same_creative : {true, false}) {
      for (std::size_t i = 0; i < wanted_.candidates.size(); ++i) {
        if (is_out_[i]) continue;
        const WantedEvent wanted = event_of(slot, i);
        const auto known = known_decision(ledger_, wanted, question_.now);
        if (!known || known->answer == ReserveAnswer::kReleased) continue;
        if (same_creative && held_creative(wanted) != wanted.candidate.creative) continue;
        is_out_[i] = true;
        slots_[slot] = {.candidate = i,
                        .answer = known->answer,
                        .time = known->time,
                        .expires = known->expires};
        return;
      }
    }
  }

  [[nodiscard]] std::uint64_t held_creative(const WantedEvent& wanted) const noexcept {
    const std::uint64_t campaign = wanted.candidate.campaign;
    if (const auto entry = ledger_.find(campaign, wanted.type, wanted.fingerprint)) {
      return ledger_.creatives()[*entry];
    }
    return ledger_.find_reservation(campaign, wanted.type, wanted.fingerprint)->event.creative;
  }

  void fill(std::size_t slot) {
    for (std::size_t i = 0; i < wanted_.candidates.size(); ++i) {
      if (is_out_[i]) continue;
      const ReserveDecision decision = decide_reserve(evaluator_, question_, event_of(slot, i));
      // One that was released under this slot's id may still be shown in another slot.
      if (decision.answer == ReserveAnswer::kReleased) continue;
      is_out_[i] = true;
      if (!is_allowed(decision.answer)) {
        lacks_history_ |= decision.answer == ReserveAnswer::kIncomplete;
        continue;
      }
      assign(slot, i, decision);
      return;
    }
    slots_[slot].answer = lacks_history_ ? ReserveAnswer::kIncomplete : ReserveAnswer::kCapped;
  }

  void assign(std::size_t slot, std::size_t candidate, const ReserveDecision& decision) {
    const WantedEvent event = event_of(slot, candidate);
    const ledger::Reservation reservation{.event = {.time = decision.time,
                                                    .campaign = event.candidate.campaign,
                                                    .creative = event.candidate.creative,
                                                    .type = event.type,
                                                    .fingerprint = event.fingerprint},
                                          .expires = decision.time + wanted_.life};
    ledger_.merge(reservation);
    to_write_.push_back(reservation);
    slots_[slot] = {.candidate = candidate,
                    .answer = decision.answer,
                    .time = decision.time,
                    .expires = reservation.expires};
  }

  Evaluator& evaluator_;
  ledger::Ledger& ledger_;
  const Evaluator::Question& question_;
  const WantedPicks& wanted_;
  std::vector<ledger::Reservation>& to_write_;
  std::vector<bool> is_out_;  ///< per candidate: picked, refused, or invalid
  std::vector<SlotPick> slots_;
  bool lacks_history_ = false;
};

}  // namespace

Instant time_to_write(const ledger::Ledger& ledger, Instant now) noexcept {
  const auto erased = ledger.erased_before();
  return erased && now <= *erased ? *erased + std::chrono::milliseconds{1} : now;
}

// An event at `now` counts in every window of its targets, whatever the window's kind. So with it
// no rule exceeds its limit exactly where none stands in the way without it.
ReserveDecision decide_reserve(Evaluator& evaluator, const Evaluator::Question& question,
                               const WantedEvent& wanted) {
  if (auto known = known_decision(question.ledger, wanted, question.now)) return *known;
  ReserveDecision decision;
  Evaluator::Question hard = question;
  hard.whatever_is_confirmed = true;
  evaluator.evaluate(hard, {&wanted.candidate, 1}, {&decision.verdict, 1});
  decision.answer = answer_of(decision.verdict);
  decision.time = time_to_write(question.ledger, question.now);
  // It would not count yet, and so not keep the next one away.
  const bool counts = decision.time <= question.now + kReservedAheadMax;
  if (!counts && is_allowed(decision.answer)) decision.answer = ReserveAnswer::kIncomplete;
  return decision;
}

std::vector<SlotPick> decide_picks(Evaluator& evaluator, ledger::Ledger& ledger,
                                   const Evaluator::Question& question, const WantedPicks& wanted,
                                   std::vector<ledger::Reservation>& to_write) {
  return Picking(evaluator, ledger, question, wanted, to_write).run();
}

}  // namespace fcap::rules
