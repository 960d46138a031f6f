#pragma once

#include <span>
#include <string_view>

#include <fcap/explain.h>

#include "ledger/ledger.h"
#include "rules/evaluate.h"

namespace fcap::explanation {

/// Explains each candidate by a user's history. By what else is given: the user, the instant, the
/// rules (which must not be null) and segments, and of the record `missing_before` and `stale`.
/// Fills in the candidates, how much the history holds, and the time-zone data. `as_of`: entries
/// later than the instant are dropped from the history first. Throws std::bad_alloc.
void explain_history(rules::Evaluator& evaluator, ledger::Ledger& history,
                     std::span<const Candidate> candidates,
                     std::span<const std::string_view> segments, bool as_of,
                     Explanation& explanation);

}  // namespace fcap::explanation
