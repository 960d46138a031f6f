#include "checker/judge.h"

#include <algorithm>
#include <array>

#include "ledger/ids.h"

namespace fcap::checker {
namespace {

bool is_invalid(const rules::CandidateKey& key) noexcept {
  return key.campaign == kInvalidCandidate.campaign;
}

// A fingerprint for the pick of this ordinal that no impression of the campaign in the ledger has,
// so that the pick is merged as an event of its own. Real fingerprints are hashes: the first try
// nearly always does, and starting from the ordinal keeps the search from passing over all earlier
// picks again.
std::uint32_t unused_fingerprint(const ledger::Ledger& ledger, std::uint64_t campaign,
                                 std::size_t ordinal) noexcept {
  auto candidate = static_cast<std::uint32_t>(ordinal);
  while (ledger.contains(campaign, EventType::kImpression, candidate)) candidate += 0x9E3779B1U;
  return candidate;
}

// A pick as an entry. One that an erasure ahead of `now` would swallow counts just behind it.
ledger::Entry shown_now(const ledger::Ledger& ledger, const rules::CandidateKey& candidate,
                        std::size_t ordinal, Instant now) noexcept {
  const auto erased = ledger.erased_before();
  return {.time = erased && now <= *erased ? *erased + std::chrono::milliseconds{1} : now,
          .campaign = candidate.campaign,
          .creative = candidate.creative,
          .type = EventType::kImpression,
          .fingerprint = unused_fingerprint(ledger, candidate.campaign, ordinal)};
}

rules::Evaluator::Question question(const Scratch& scratch, const Asked& asked) noexcept {
  return {.rules = *scratch.held.rules,
          .ledger = scratch.ledger,
          .now = asked.now,
          .segments = asked.segments,
          .stored = scratch.held.segments.get(),
          .user = asked.user};
}

}  // namespace

void hash_candidates(std::span<const Candidate> candidates,
                     std::vector<rules::CandidateKey>& keys) {
  keys.clear();
  keys.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    const bool valid = candidate.campaign.size() <= ledger::kIdBytesMax &&
                       candidate.creative.size() <= ledger::kIdBytesMax;
    keys.push_back(valid ? rules::candidate_key(candidate) : kInvalidCandidate);
  }
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
  result.verdicts.assign(candidate_count, verdict);
}

Verdict invalid_verdict(bool fail_open) noexcept {
  Verdict verdict;
  verdict.allowed = fail_open;
  verdict.reason = Reason::kInvalid;
  return verdict;
}

std::uint32_t judge(Scratch& scratch, const Asked& asked, bool fail_open, CheckResult& result) {
  result.reason = Reason::kPassed;
  result.rules = scratch.held.rules;
  result.verdicts.resize(asked.candidates.size());
  const std::uint32_t shadow_capped =
      scratch.evaluator.evaluate(question(scratch, asked), asked.candidates, result.verdicts);
  for (std::size_t i = 0; i < asked.candidates.size(); ++i) {
    if (is_invalid(asked.candidates[i])) result.verdicts[i] = invalid_verdict(fail_open);
  }
  return shadow_capped;
}

Picks pick(Scratch& scratch, const Asked& asked, std::size_t k, bool fail_open) {
  // Judged a few at a time: most searches end early. A pick changes the verdicts of what comes
  // after it, so the next look is at one candidate, and twice as many each time that none passes.
  std::array<Verdict, 16> verdicts;
  std::size_t few_max = 1;
  Picks picks;
  picks.picked.reserve(std::min(k, asked.candidates.size()));
  std::size_t next = 0;
  while (next < asked.candidates.size() && picks.picked.size() < k) {
    const auto few =
        asked.candidates.subspan(next, std::min(few_max, asked.candidates.size() - next));
    few_max = std::min(2 * few_max, verdicts.size());
    scratch.evaluator.evaluate(question(scratch, asked), few,
                               std::span(verdicts).first(few.size()));
    for (std::size_t at = 0; at < few.size(); ++at) {
      ++next;
      const bool invalid = is_invalid(few[at]);
      if (!invalid && verdicts[at].shadow_capped) ++picks.shadow_capped;
      if (!(invalid ? fail_open : verdicts[at].allowed)) continue;
      picks.picked.push_back(next - 1);
      if (picks.picked.size() == k) break;
      if (invalid) continue;
      scratch.ledger.merge(shown_now(scratch.ledger, few[at], picks.picked.size(), asked.now));
      few_max = 1;
      break;
    }
  }
  picks.judged = next;
  return picks;
}

}  // namespace fcap::checker
