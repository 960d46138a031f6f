#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/store.h>
#include <fcap/verdict.h>

#include "checker/question.h"
#include "checker/scratch_pool.h"
#include "checker/shadow_counts.h"

namespace fcap::checker {

/// The reason for answering without the history, where a read ended in this way; kPassed for kOk
/// and kNotFound.
[[nodiscard]] Reason reason_of(StoreCode code) noexcept;

/// What a read has given.
struct ReadOutcome {
  Reason reason = Reason::kPassed;  ///< kPassed: judge by the record
  std::string_view record = {};
  bool stale = false;  ///< a replica's
  bool found = false;  ///< there is a record
};

[[nodiscard]] inline ReadOutcome read_outcome(const StoreOutcome& outcome) noexcept {
  return {.reason = reason_of(outcome.code),
          .record = outcome.record,
          .stale = outcome.stale,
          .found = outcome.code == StoreCode::kOk};
}

/// What to ask the evaluator about scratch.ledger. The question's rules are not null.
[[nodiscard]] rules::Evaluator::EvaluatorInput to_evaluate(const Scratch& scratch,
                                                           const Question& question) noexcept;

/// Gives every candidate the same answer. Throws std::bad_alloc.
void answer_alike(std::size_t candidate_count, Reason reason, bool allowed, CheckResult& result);

/// The verdict of a candidate with an id outside its range.
[[nodiscard]] Verdict invalid_verdict(bool fail_open) noexcept;

/// Judges by scratch.ledger and the question's rules, which is not null. Returns how many
/// candidates a shadow rule would have capped, and counts them by rule. Throws std::bad_alloc.
std::uint32_t judge(Scratch& scratch, const Question& question, bool fail_open,
                    ShadowCounts& shadows, CheckResult& result);

/// Where the history could not be had: replaces the verdicts of candidates that are capped for
/// certain by scratch.ledger, which has only a part of the history. Returns how many. Throws
/// std::bad_alloc.
std::uint32_t cap_certain(Scratch& scratch, const Question& question, CheckResult& result);

struct Picks {
  std::vector<std::size_t> picked;  ///< indices, ascending
  std::size_t judged = 0;           ///< how many candidates were looked at
  bool stale = false;               ///< by a replica's record
  CheckToken token = {};
  std::uint64_t shadow_capped = 0;  ///< of those, how many a shadow rule would have capped
};

/// Picks up to `k` candidates that may be shown together: each pick is added to scratch.ledger as
/// shown at `now`. `picks.picked` has room for them. None is picked that `known`, if not empty,
/// does not allow. Throws std::bad_alloc.
void pick(Scratch& scratch, const Question& question, std::size_t k, bool fail_open,
          ShadowCounts& shadows, Picks& picks, std::span<const Verdict> known = {});

}  // namespace fcap::checker
