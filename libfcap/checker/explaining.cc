#include "checker/explaining.h"

#include <memory>
#include <string>
#include <utility>

#include "base/caller_state.h"
#include "explanation/explain_history.h"
#include "ledger/user_key.h"

namespace fcap::checker {
namespace {

// Candidates with these verdicts, and no rules behind them.
void give(const CheckResult& result, std::span<const Candidate> candidates,
          Explanation& explanation) {
  explanation.reason = result.reason;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    explanation.candidates.push_back({.campaign = std::string(candidates[i].campaign),
                                      .creative = std::string(candidates[i].creative),
                                      .verdict = result.verdicts[i]});
  }
}

}  // namespace

Explaining::Explaining(SharedParts parts) : parts_(parts), read_groups_(Pool<ReadGroup>::make()) {}

Explanation Explaining::explain(std::string_view user, std::span<const Candidate> candidates,
                                const CheckOptions& options) noexcept {
  const base::CallerState caller;
  // Before the Gate is asked, so that the destructor waits for whoever it lets in.
  CountedCall inside(parts_.counters);
  Explanation explanation;
  try {
    explanation.user = user;
    explain_one(inside, user, candidates, options, explanation);
  } catch (...) {  // no memory, or the host's clock threw
    explanation.candidates.clear();
    explanation.reason = Reason::kOverloaded;
  }
  return explanation;
}

void Explaining::explain_one(CountedCall& inside, std::string_view user,
                             std::span<const Candidate> candidates, const CheckOptions& options,
                             Explanation& explanation) {
  const Clock::time_point deadline = Clock::now() + parts_.judgement.deadline_of(options);
  Reason reason = parts_.gate.refuse_blocking();
  if (reason == Reason::kPassed) reason = parts_.gate.refuse_user(user);
  Question question;
  explanation.at = parts_.judgement.instant_of(options);
  if (reason == Reason::kPassed) {
    reason = parts_.judgement.prepare(user, candidates, options, question);
    explanation.at = question.now;
  }
  if (reason != Reason::kPassed) return answer_alike(reason, candidates, explanation);
  explanation.rules = question.held.rules;
  explanation.segments = question.held.segments;
  explanation.record.missing_before = question.completeness.missing_before();
  const HeldGroup group(read_groups_->acquire());
  group->prepare(0);
  ledger::user_key(parts_.options.key_prefix, user, group->key);
  explanation.record.key = group->key;
  const ReadOutcome outcome = read(inside, *group, deadline);
  explain_record(question, outcome, candidates, options.now.has_value(), explanation);
}

ReadOutcome Explaining::read(CountedCall& inside, ReadGroup& group, Clock::time_point deadline) {
  group.prepare(1);
  if (!group.read_directly(parts_.direct, 0, group.key, deadline)) {
    group.start(parts_.store, 0, group.key, deadline);
  }
  inside.submitted();  // the store is not touched any more
  group.wait_until_left(0, deadline);
  const ReadGroup::Read& read = group.read(0);
  // We ask answered() only once, because the answer may arrive between two looks.
  return read.answered() ? read_outcome(read.outcome()) : ReadOutcome{.reason = Reason::kTimeout};
}

void Explaining::explain_record(const Question& question, const ReadOutcome& outcome,
                                std::span<const Candidate> candidates, bool as_of,
                                Explanation& explanation) {
  const ScratchPool::HeldScratch scratch(parts_.judgement.scratches());
  const Reason reason = parts_.judgement.load(*scratch, question, outcome);
  if (reason != Reason::kPassed) {
    CheckResult result;
    (void)parts_.judgement.answer_without(*scratch, question, reason, result);
    return give(result, candidates, explanation);
  }
  RecordAccount& record = explanation.record;
  record.bytes = outcome.record.size();
  record.noted = scratch->unconfirmed;
  record.stale = outcome.stale;
  explanation::explain_history(scratch->evaluator, scratch->ledger, candidates, question.segments,
                               as_of, explanation);
  CheckResult result;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    CandidateExplanation& explained = explanation.candidates[i];
    if (is_invalid(question.candidates[i])) {
      explained.verdict = invalid_verdict(parts_.options.fail_open);
      explained.applicable.clear();
      explained.replaced.clear();
    }
    result.verdicts.push_back(explained.verdict);
  }
  if (!outcome.stale) return;
  (void)parts_.judgement.finish_stale(question, result);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    explanation.candidates[i].verdict = result.verdicts[i];
  }
}

void Explaining::answer_alike(Reason reason, std::span<const Candidate> candidates,
                              Explanation& explanation) const {
  CheckResult result;
  parts_.judgement.refuse(candidates.size(), reason, result);
  give(result, candidates, explanation);
}

}  // namespace fcap::checker
