#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/store.h>
#include <fcap/verdict.h>

#include "checker/current_rules.h"
#include "checker/pool.h"
#include "ledger/ledger.h"
#include "rules/evaluate.h"

namespace fcap::checker {

/// What judging needs for itself; kept and used again, so that it does not allocate.
struct Scratch : PoolNode<Scratch> {
  ledger::Ledger ledger;
  rules::Evaluator evaluator;
  HeldRules held;
};

/// One user's question.
struct Asked {
  std::string_view user;
  std::span<const rules::CandidateKey> candidates;
  Instant now;
  std::span<const std::string_view> segments;
};

/// Stands for a candidate with an id over 256 bytes; no hash has more than 48 bits.
inline constexpr rules::CandidateKey kInvalidCandidate{.campaign = ~std::uint64_t{0},
                                                       .creative = 0};

/// Throws std::bad_alloc.
void hash_candidates(std::span<const Candidate> candidates, std::vector<rules::CandidateKey>& keys);

/// The reason for answering without the history, where a read ended in this way; kPassed for kOk
/// and kNotFound.
[[nodiscard]] Reason reason_of(StoreCode code) noexcept;

/// Gives every candidate the same answer. Throws std::bad_alloc.
void answer_alike(std::size_t candidate_count, Reason reason, bool allowed, CheckResult& result);

/// The verdict of a candidate with an id over 256 bytes.
[[nodiscard]] Verdict invalid_verdict(bool fail_open) noexcept;

/// Judges by scratch.ledger and scratch.held.rules, which is not null. Returns how many candidates
/// a shadow rule would have capped. Throws std::bad_alloc.
std::uint32_t judge(Scratch& scratch, const Asked& asked, bool fail_open, CheckResult& result);

/// Picks up to `k` candidates that may be shown together: each pick is added to scratch.ledger as
/// shown at `now`. Returns indices, ascending. `judged` receives how many were looked at. Throws
/// std::bad_alloc.
std::vector<std::size_t> pick(Scratch& scratch, const Asked& asked, std::size_t k, bool fail_open,
                              std::size_t& judged);

}  // namespace fcap::checker
