#include "rules/evaluate.h"

#include <algorithm>

#include "rules/check.h"

namespace fcap::rules {

struct Evaluator::EvaluatorScratch {
  Check check;
};

Evaluator::Evaluator() : scratch_(std::make_unique<EvaluatorScratch>()) {}
Evaluator::~Evaluator() = default;

std::uint32_t Evaluator::evaluate(const EvaluatorInput& question,
                                  std::span<const CandidateKey> candidates,
                                  std::span<Verdict> out) {
  Check& check = scratch_->check;
  check.begin(question, candidates);
  std::uint32_t shadow_capped = 0;
  const std::size_t count = std::min(candidates.size(), out.size());
  for (std::size_t i = 0; i < count; ++i) {
    check.judge(i, out[i]);
    if (out[i].shadow_capped) ++shadow_capped;
  }
  return shadow_capped;
}

std::optional<CappedUntil> Evaluator::capped_until(std::size_t candidate) const noexcept {
  const Check& check = scratch_->check;
  if (candidate >= check.candidates()) return std::nullopt;
  const CertainObstacle& certain = check.candidate(candidate).certain;
  if (certain.rule == nullptr) return std::nullopt;
  CappedUntil capped{.rule = &check.source(*certain.rule), .count = certain.count};
  if (certain.until_ms != kNever) capped.until = instant_from_ms(certain.until_ms);
  return capped;
}

const Rule* Evaluator::shadow_rule(std::size_t candidate) const noexcept {
  const Check& check = scratch_->check;
  if (candidate >= check.candidates()) return nullptr;
  const CompiledRule* shadow = check.candidate(candidate).shadow;
  return shadow == nullptr ? nullptr : &check.source(*shadow);
}

CandidateExplanation Evaluator::explain(const EvaluatorInput& question,
                                        const Candidate& candidate) {
  const CandidateKey key = candidate_key(candidate);
  scratch_->check.begin(question, {&key, 1});
  return explain_check(scratch_->check, candidate);
}

}  // namespace fcap::rules
