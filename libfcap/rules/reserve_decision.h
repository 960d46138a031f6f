#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <fcap/rule.h>
#include <fcap/time.h>
#include <fcap/verdict.h>

#include "ledger/ledger.h"
#include "rules/evaluate.h"

/// What `reserve`, `record` and `pick_and_reserve` decide on a record, before it is replaced. Pure,
/// like the evaluation that it rests on.
namespace fcap::rules {

/// An event that somebody would like to reserve, or to record at once.
struct WantedEvent {
  CandidateKey candidate;
  EventType type = EventType::kImpression;
  std::uint32_t fingerprint = 0;
};

/// In the order in which they are decided.
enum class ReserveAnswer : std::uint8_t {
  kConfirmed,   ///< allowed: the ledger has its entry; nothing is to be written
  kReleased,    ///< refused: it was reserved and released
  kHeld,        ///< allowed: it is reserved already, and its expiry stays; nothing is to be written
  kCapped,      ///< refused: with it, an enforced rule would exceed its limit
  kIncomplete,  ///< refused: a rule counts further back than the record or its source reaches, or
                ///< the user was erased until more than kReservedAheadMax from now
  kGranted,     ///< allowed: to be written
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
  /// Of kHeld: the expiry that stays.
  std::optional<Instant> expires = {};
  /// Of kCapped, kIncomplete and kGranted: what the evaluation said.
  Verdict verdict = {};
};

/// The time that an event of this instant is written with: an erasure would take an earlier one.
[[nodiscard]] Instant time_to_write(const ledger::Ledger& ledger, Instant now) noexcept;

/// Decides on one event. Soft and hard rules are alike here. A rule of another event type refuses
/// where it would cap a check. Throws std::bad_alloc, as evaluate() does; the Evaluator's
/// shadow_rule(0) is this event's after an answer that has a verdict.
[[nodiscard]] ReserveDecision decide_reserve(Evaluator& evaluator,
                                             const Evaluator::Question& question,
                                             const WantedEvent& wanted);

/// Impressions of a page: one event id per slot, and candidates in order of rank. A candidate whose
/// campaign has more than 48 bits stands for an invalid one, and is never picked.
struct WantedPicks {
  std::span<const CandidateKey> candidates;
  std::span<const std::uint32_t> fingerprints;  ///< one per slot
  std::chrono::milliseconds life{0};            ///< of a reservation
};

/// What one slot gets.
struct SlotPick {
  std::optional<std::size_t> candidate;  ///< none: no candidate passes
  /// Of a slot without a candidate: kIncomplete if one was refused for that, otherwise kCapped.
  ReserveAnswer answer = ReserveAnswer::kCapped;
  Instant time;                         ///< as in ReserveDecision
  std::optional<Instant> expires = {};  ///< as in ReserveDecision, and of kGranted
};

/// Decides on all slots: a candidate that the ledger holds under a slot's event id (its entry, or a
/// live reservation) is that slot's pick; the other slots take candidates in order of rank, each at
/// most once, and every pick counts for those after it. `ledger` is the question's; the
/// reservations that are to be written, those of kGranted, are merged into it and appended to
/// `to_write`. Throws std::bad_alloc; then the ledger may have some of them.
[[nodiscard]] std::vector<SlotPick> decide_picks(Evaluator& evaluator, ledger::Ledger& ledger,
                                                 const Evaluator::Question& question,
                                                 const WantedPicks& wanted,
                                                 std::vector<ledger::Reservation>& to_write);

}  // namespace fcap::rules
