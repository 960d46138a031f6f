#include "rules/reserve_decision.h"

#include "rules/reservation_state.h"

namespace fcap::rules {
namespace {

// What the ledger knows of an event already; nothing where it is to be evaluated. An id stands for
// one impression, which may have been shown: the rules have not let it through with another
// creative.
std::optional<ReserveDecision> known_decision(const ledger::Ledger& ledger,
                                              const WantedEvent& wanted, bool is_shown,
                                              Instant now) noexcept {
  const auto [campaign, creative] = wanted.candidate;
  if (const auto entry = ledger.find(campaign, wanted.type, wanted.fingerprint)) {
    const bool is_same = ledger.creatives()[*entry] == creative;
    return ReserveDecision{
        .answer = is_same ? ReserveAnswer::kConfirmed : ReserveAnswer::kOtherCreative,
        .time = ledger.times()[*entry]};
  }
  const ledger::Reservation* held =
      ledger.find_reservation(campaign, wanted.type, wanted.fingerprint);
  if (held == nullptr) return std::nullopt;
  if (held->released) {
    if (is_shown) return std::nullopt;
    return ReserveDecision{.answer = ReserveAnswer::kReleased, .time = held->event.time};
  }
  if (held->expires <= now) return std::nullopt;
  const bool is_same = held->event.creative == creative || is_shown;
  return ReserveDecision{.answer = is_same ? ReserveAnswer::kHeld : ReserveAnswer::kOtherCreative,
                         .time = held->event.time,
                         .expires = held->expires};
}

}  // namespace

Instant time_to_write(const ledger::Ledger& ledger, Instant now) noexcept {
  const auto erased = ledger.erased_before();
  return erased && now <= *erased ? *erased + std::chrono::milliseconds{1} : now;
}

ReserveAnswer answer_of(const Verdict& verdict, const ledger::Ledger& ledger,
                        Instant now) noexcept {
  if (!verdict.allowed) return ReserveAnswer::kCapped;
  // What is written further ahead does not count yet, so it would not keep the next call from
  // exceeding the limit.
  const bool counts = time_to_write(ledger, now) <= now + kReservedAheadMax;
  return verdict.complete && counts ? ReserveAnswer::kGranted : ReserveAnswer::kIncomplete;
}

// An event at `now` counts in every window of its targets, whatever the window's kind. So with it
// no rule exceeds its limit exactly where none stands in the way without it.
ReserveDecision decide_reserve(Evaluator& evaluator, const Evaluator::EvaluatorInput& question,
                               const WantedEvent& wanted) {
  if (auto known = known_decision(question.ledger, wanted, false, question.now)) return *known;
  ReserveDecision decision;
  decision.time = time_to_write(question.ledger, question.now);
  Evaluator::EvaluatorInput hard = question;
  hard.any_confirmation_order = true;
  evaluator.evaluate(hard, {&wanted.candidate, 1}, {&decision.verdict, 1});
  decision.answer = answer_of(decision.verdict, question.ledger, question.now);
  return decision;
}

ReserveDecision decide_shown(const ledger::Ledger& ledger, const WantedEvent& wanted,
                             Instant now) noexcept {
  if (auto known = known_decision(ledger, wanted, true, now)) return *known;
  return {.answer = ReserveAnswer::kGranted, .time = time_to_write(ledger, now)};
}

}  // namespace fcap::rules
