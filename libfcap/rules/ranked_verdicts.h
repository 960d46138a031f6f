#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include <fcap/rule.h>
#include <fcap/verdict.h>

#include "rules/evaluate.h"

namespace fcap::rules {

/// The verdicts of candidates in order of rank, for a search that may end early. They are judged a
/// group at a time, each group twice as many as the one before, because each group looks at the
/// user's whole history once: a search through n candidates costs fewer than 2n verdicts and about
/// log2(n) looks.
///
/// Not thread-safe.
class RankedVerdicts {
 public:
  /// All of them must outlive it; `room` is its memory.
  RankedVerdicts(Evaluator& evaluator, const Evaluator::EvaluatorInput& question,
                 std::span<const CandidateKey> candidates, std::vector<Verdict>& room) noexcept
      : evaluator_(evaluator), question_(question), candidates_(candidates), room_(room) {}

  /// Whether of() is known already.
  [[nodiscard]] bool is_judged(std::size_t index) const noexcept {
    return begin_ <= index && index < end_;
  }
  /// The verdict of one candidate; ask in ascending order. Valid until the next call. Throws
  /// std::bad_alloc.
  [[nodiscard]] const Verdict& of(std::size_t index) {
    if (!is_judged(index)) judge_from(index);
    return room_[index - begin_];
  }
  /// As Evaluator::shadow_rule(), of the candidate that of() was asked about last.
  [[nodiscard]] const Rule* shadow_rule(std::size_t index) const noexcept {
    return evaluator_.shadow_rule(index - begin_);
  }
  /// Must be called when the question's ledger has changed.
  void forget() noexcept { begin_ = end_ = group_ = 0; }

 private:
  void judge_from(std::size_t index) {
    group_ = std::max<std::size_t>(2 * group_, 1);
    const auto group = candidates_.subspan(index, std::min(group_, candidates_.size() - index));
    begin_ = end_ = 0;  // should memory run out
    if (room_.size() < group.size()) room_.resize(group.size());
    evaluator_.evaluate(question_, group, std::span(room_).first(group.size()));
    begin_ = index;
    end_ = index + group.size();
  }

  Evaluator& evaluator_;
  const Evaluator::EvaluatorInput& question_;
  std::span<const CandidateKey> candidates_;
  std::vector<Verdict>& room_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t group_ = 0;  ///< of the last one; 0: none yet
};

}  // namespace fcap::rules
