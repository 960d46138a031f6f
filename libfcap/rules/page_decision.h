#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <fcap/time.h>

#include "ledger/ledger.h"
#include "rules/evaluate.h"
#include "rules/reserve_decision.h"

/// What is decided on a record for a reserved page, before it is replaced. Pure but for the
/// question whether time is left.
namespace fcap::rules {

/// Impressions of a page: one event id per slot, and candidates in order of rank. A candidate whose
/// campaign has more than 48 bits stands for an invalid one, and is never picked.
struct WantedPicks {
  std::span<const CandidateKey> candidates;
  std::span<const std::uint32_t> fingerprints;  ///< one per slot
  std::chrono::milliseconds life{0};            ///< of a reservation
  /// Asked before each look at the history but the first; then nothing more is decided. Empty:
  /// never.
  std::function<bool()> is_late = {};
};

/// What one slot gets.
struct SlotPick {
  std::optional<std::size_t> candidate;  ///< none: no candidate passes
  /// For a slot without a candidate: kHeld or kConfirmed if its event id belongs to what is not
  /// among the candidates; kLate; kIncomplete if one was refused for that; otherwise kCapped.
  ReserveAnswer answer = ReserveAnswer::kCapped;
  Instant time;                         ///< as in ReserveDecision
  std::optional<Instant> expires = {};  ///< as in ReserveDecision, and of kGranted
};

/// Decides on all slots. What the ledger holds under a slot's event id (an entry, or a live
/// reservation) is that slot's pick, whether or not it is among the candidates; the other slots
/// take candidates in order of rank, each at most once, and every pick counts for those after it.
/// `ledger` is the question's; the reservations that are to be written, those of kGranted, are
/// merged into it. Where a slot is kLate, none of them may be written. Throws std::bad_alloc; then
/// the ledger may have some of them.
[[nodiscard]] std::vector<SlotPick> decide_picks(Evaluator& evaluator, ledger::Ledger& ledger,
                                                 const Evaluator::EvaluatorInput& question,
                                                 const WantedPicks& wanted);

}  // namespace fcap::rules
