#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fcap/explain.h>
#include <fcap/rule_set.h>
#include <fcap/segment_set.h>
#include <fcap/verdict.h>

#include "ledger/ledger.h"
#include "rules/completeness.h"

namespace fcap::rules {

/// A candidate as evaluation sees it: id_hash() of its ids; creative 0 is none.
struct CandidateKey {
  std::uint64_t campaign = 0;
  std::uint64_t creative = 0;
};

[[nodiscard]] CandidateKey candidate_key(const Candidate& candidate) noexcept;

/// A rule that caps a candidate whatever else is recorded, short of a change of rules or segments
/// or an erasure: events do that, reservations cannot, since they may expire or be released.
struct CappedUntil {
  const Rule* rule = nullptr;
  std::uint32_t count = 0;
  std::optional<Instant> until = {};  ///< none: permanently
};

/// Judges candidates against a ledger, whose live reservations count like events: the one place
/// where rules are evaluated, for soft and hard checks, explain, simulation and tests. Pure: no
/// clock, no I/O, no randomness. Holds scratch memory only, so that repeated use does not allocate.
///
/// evaluate() and explain() throw std::bad_alloc. The Evaluator can be asked again afterwards.
///
/// Not thread-safe; one Evaluator per thread.
class Evaluator {
 public:
  Evaluator();
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  struct EvaluatorInput {
    const RuleSet& rules;
    const ledger::Ledger& ledger;
    Instant now;
    /// Segments the user is in, by name; unknown names are ignored.
    std::span<const std::string_view> segments = {};
    /// Segments that are stored; the user is in those that have `user` as well. Null: none are.
    const SegmentSet* stored = nullptr;
    std::string_view user = {};
    /// What the ledger lacks, but for what was trimmed: that it says itself.
    Completeness completeness = {};
    /// For those who reserve: fixed windows are counted so that their limits hold in whatever order
    /// reservations are confirmed (FixedWindow).
    bool any_confirmation_order = false;
  };

  /// One verdict per candidate, in `out` (as long as `candidates`). Returns how many candidates a
  /// shadow rule stands in the way of, whether or not an enforced one does too. When it throws,
  /// `out` may hold some of the verdicts.
  std::uint32_t evaluate(const EvaluatorInput& question, std::span<const CandidateKey> candidates,
                         std::span<Verdict> out);

  /// The sliding or calendar rule (or limit of 0) that certainly caps a candidate for longest, as
  /// the last evaluate() found. Counts of such rules only grow while history is added. None for
  /// candidates that pass or that only other rules cap, that an evaluate() which threw did not
  /// reach, and where the record was trimmed for size.
  [[nodiscard]] std::optional<CappedUntil> capped_until(std::size_t candidate) const noexcept;

  /// The shadow rule with the smallest id of those that stand in a candidate's way, as the last
  /// evaluate() found. Null where its verdict does not say `shadow_capped`.
  [[nodiscard]] const Rule* shadow_rule(std::size_t candidate) const noexcept;

  /// The verdict with every rule behind it.
  CandidateExplanation explain(const EvaluatorInput& question, const Candidate& candidate);

 private:
  struct EvaluatorScratch;
  std::unique_ptr<EvaluatorScratch> scratch_;
};

}  // namespace fcap::rules
