#include "checker/verdicts.h"

#include <algorithm>
#include <vector>

#include "rules/ranked_verdicts.h"
#include "rules/reserve_decision.h"

namespace fcap::checker {
namespace {

// A fingerprint for the pick of this ordinal that no impression of the campaign in the ledger has,
// so that the pick is merged as an event of its own. Real fingerprints are hashes: the first try
// nearly always does. In a record that was made to hold the first ones, sorting keeps each further
// try from walking through the run.
std::uint32_t unused_fingerprint(const ledger::Ledger& ledger, std::uint64_t campaign,
                                 std::size_t ordinal) {
  auto candidate = static_cast<std::uint32_t>(ordinal);
  const ledger::Run* const run = ledger.find_run(campaign, EventType::kImpression);
  if (run == nullptr || !ledger.contains(campaign, EventType::kImpression, candidate)) {
    return candidate;
  }
  const auto used = ledger.fingerprints().subspan(run->begin, run->end - run->begin);
  std::vector<std::uint32_t> sorted(used.begin(), used.end());
  std::sort(sorted.begin(), sorted.end());
  auto next = std::lower_bound(sorted.begin(), sorted.end(), candidate);
  for (; next != sorted.end() && *next == candidate; ++next) ++candidate;
  return candidate;
}

// A pick as an entry. One that an erasure ahead of `now` would swallow counts just behind it.
ledger::Entry shown_now(const ledger::Ledger& ledger, const rules::CandidateKey& candidate,
                        std::size_t ordinal, Instant now) {
  return {.time = rules::time_to_write(ledger, now),
          .campaign = candidate.campaign,
          .creative = candidate.creative,
          .type = EventType::kImpression,
          .fingerprint = unused_fingerprint(ledger, candidate.campaign, ordinal)};
}

}  // namespace

rules::Evaluator::EvaluatorInput to_evaluate(const Scratch& scratch,
                                             const Question& question) noexcept {
  return {.rules = *question.held.rules,
          .ledger = scratch.ledger,
          .now = question.now,
          .segments = question.segments,
          .stored = question.held.segments.get(),
          .user = question.user,
          .completeness = scratch.stale ? rules::Completeness::of_replica(question.now)
                                        : question.completeness};
}

Reason reason_of(StoreCode code) noexcept {
  switch (code) {
    case StoreCode::kOk:
    case StoreCode::kNotFound:
      return Reason::kPassed;
    case StoreCode::kTimeout:
      return Reason::kTimeout;
    case StoreCode::kBreakerOpen:
      return Reason::kBreakerOpen;
    case StoreCode::kOverloaded:
      return Reason::kOverloaded;
    case StoreCode::kTooLarge:
      return Reason::kUndecodable;
    case StoreCode::kConflict:
    case StoreCode::kUnavailable:
    case StoreCode::kServerError:
      return Reason::kUnavailable;
  }
  return Reason::kUnavailable;
}

void answer_alike(std::size_t candidate_count, Reason reason, bool allowed, CheckResult& result) {
  Verdict verdict;
  verdict.allowed = allowed;
  verdict.reason = reason;
  result.reason = reason;
  result.token = {};
  result.verdicts.assign(candidate_count, verdict);
}

Verdict invalid_verdict(bool fail_open) noexcept {
  Verdict verdict;
  verdict.allowed = fail_open;
  verdict.reason = Reason::kInvalid;
  return verdict;
}

std::uint32_t judge(Scratch& scratch, const Question& question, bool fail_open,
                    ShadowCounts& shadows, CheckResult& result) {
  result.reason = Reason::kPassed;
  result.rules = question.held.rules;
  result.token = {};
  result.verdicts.resize(question.candidates.size());
  const std::uint32_t shadow_capped = scratch.evaluator.evaluate(
      to_evaluate(scratch, question), question.candidates, result.verdicts);
  for (std::size_t i = 0; i < question.candidates.size(); ++i) {
    if (is_invalid(question.candidates[i])) result.verdicts[i] = invalid_verdict(fail_open);
  }
  if (shadow_capped == 0) return 0;
  for (std::size_t i = 0; i < question.candidates.size(); ++i) {
    if (const Rule* shadow = scratch.evaluator.shadow_rule(i)) shadows.add(shadow->id);
  }
  return shadow_capped;
}

std::uint32_t cap_certain(Scratch& scratch, const Question& question, CheckResult& result) {
  std::vector<Verdict> verdicts(question.candidates.size());
  // The ledger has only a part of the history, so its completeness is not looked at. A cap that
  // this part reaches holds, whatever else is missing.
  rules::Evaluator::EvaluatorInput certainly = to_evaluate(scratch, question);
  certainly.completeness = {};
  scratch.evaluator.evaluate(certainly, question.candidates, verdicts);
  std::uint32_t capped_count = 0;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    if (is_invalid(question.candidates[i])) continue;
    result.verdicts[i].needs_reserve = verdicts[i].needs_reserve;
    const auto capped = scratch.evaluator.capped_until(i);
    if (!capped) continue;
    Verdict& verdict = result.verdicts[i];
    verdict = {};
    verdict.needs_reserve = verdicts[i].needs_reserve;
    verdict.allowed = false;
    verdict.reason = Reason::kCapped;
    verdict.rule_id = capped->rule->id;
    verdict.count = capped->count;
    verdict.limit = capped->rule->limit.value_or(0);
    // Any event may be missing, so the count is a lower bound.
    verdict.complete = rules::Completeness(question.now).covers_unknown(verdict.limit);
    verdict.eligible_at = capped->until;
    ++capped_count;
  }
  if (capped_count > 0) result.rules = question.held.rules;
  return capped_count;
}

void pick(Scratch& scratch, const Question& question, std::size_t k, bool fail_open,
          ShadowCounts& shadows, Picks& picks, std::span<const Verdict> known) {
  const std::span<const rules::CandidateKey> candidates = question.candidates;
  const rules::Evaluator::EvaluatorInput evaluated = to_evaluate(scratch, question);
  // A pick changes the verdicts of what comes after it.
  rules::RankedVerdicts verdicts(scratch.evaluator, evaluated, candidates, scratch.verdicts);
  std::size_t next = 0;
  while (next < candidates.size() && picks.picked.size() < k) {
    const std::size_t at = next++;
    const bool invalid = is_invalid(candidates[at]);
    const Verdict& verdict = verdicts.of(at);
    if (!invalid && verdict.shadow_capped) {
      ++picks.shadow_capped;
      shadows.add(verdicts.shadow_rule(at)->id);
    }
    if (!(invalid ? fail_open : verdict.allowed)) continue;
    if (!known.empty() && !known[at].allowed) continue;
    picks.picked.push_back(at);
    if (picks.picked.size() == k || invalid) continue;
    scratch.ledger.merge(
        shown_now(scratch.ledger, candidates[at], picks.picked.size(), question.now));
    verdicts.forget();
  }
  picks.judged = next;
}

}  // namespace fcap::checker
