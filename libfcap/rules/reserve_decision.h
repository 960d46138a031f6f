#pragma once

#include <cstdint>
#include <optional>

#include <fcap/rule.h>
#include <fcap/time.h>
#include <fcap/verdict.h>

#include "ledger/ledger.h"
#include "rules/evaluate.h"

/// What `reserve` and `record` decide on a record, before it is replaced. Pure, like the evaluation
/// that it rests on.
namespace fcap::rules {

/// An event that somebody would like to reserve, or to record at once.
struct WantedEvent {
  CandidateKey candidate;
  EventType type = EventType::kImpression;
  std::uint32_t fingerprint = 0;
};

/// In the order in which they are decided.
enum class ReserveAnswer : std::uint8_t {
  kConfirmed,  ///< allowed: the ledger has its entry; nothing is to be written
  kReleased,   ///< refused: it was reserved and released
  kHeld,       ///< allowed: it is reserved already, and its expiry stays; nothing is to be written
  kOtherCreative,  ///< refused: it is there already, as kConfirmed or kHeld, with another creative
  kCapped,         ///< refused: with it, an enforced rule would exceed its limit
  kIncomplete,     ///< refused: a rule counts further back than the record or its source reaches,
                   ///< or the user was erased until more than kReservedAheadMax from now
  kLate,           ///< refused, of a page: no time was left to decide
  kGranted,        ///< allowed: to be written
};

[[nodiscard]] constexpr bool is_allowed(ReserveAnswer answer) noexcept {
  return answer == ReserveAnswer::kConfirmed || answer == ReserveAnswer::kHeld ||
         answer == ReserveAnswer::kGranted;
}

struct ReserveDecision {
  ReserveAnswer answer = ReserveAnswer::kIncomplete;
  /// The event's time: as recorded or reserved, or the one to write. It is the question's `now`, or
  /// where an erasure reaches beyond that, the first instant after it.
  Instant time;
  /// The expiry that stays, with kHeld.
  std::optional<Instant> expires = {};
  /// What the evaluation said, with kCapped, kIncomplete and kGranted.
  Verdict verdict = {};
};

/// The time that an event of this instant is written with: an erasure would take an earlier one.
[[nodiscard]] Instant time_to_write(const ledger::Ledger& ledger, Instant now) noexcept;

/// What an evaluation for those who reserve (EvaluatorInput::any_confirmation_order) comes to:
/// kCapped, kIncomplete or kGranted.
[[nodiscard]] ReserveAnswer answer_of(const Verdict& verdict, const ledger::Ledger& ledger,
                                      Instant now) noexcept;

/// Decides on one event. Soft and hard rules are alike here. A rule of another event type refuses
/// where it would cap a check. Throws std::bad_alloc, as evaluate() does; the Evaluator's
/// shadow_rule(0) is this event's after an answer that has a verdict.
[[nodiscard]] ReserveDecision decide_reserve(Evaluator& evaluator,
                                             const Evaluator::EvaluatorInput& question,
                                             const WantedEvent& wanted);

/// Decides on one that has been shown and is to be recorded, whatever rules or a release say.
[[nodiscard]] ReserveDecision decide_shown(const ledger::Ledger& ledger, const WantedEvent& wanted,
                                           Instant now) noexcept;

}  // namespace fcap::rules
