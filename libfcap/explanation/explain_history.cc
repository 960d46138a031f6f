#include "explanation/explain_history.h"

#include "rules/rule_set_access.h"

namespace fcap::explanation {

void explain_history(rules::Evaluator& evaluator, ledger::Ledger& history,
                     std::span<const Candidate> candidates,
                     std::span<const std::string_view> segments, bool as_of,
                     Explanation& explanation) {
  RecordAccount& record = explanation.record;
  record.complete_since = history.complete_since();
  if (as_of) {
    const std::size_t before = history.size();
    history.drop_after(explanation.at);
    record.left_out = before - history.size();
  }
  record.entries = history.size();
  record.reservations = history.reservations().size();
  explanation.time_zone_data = rules::RuleSetAccess::compiled(*explanation.rules).zone_data_version;
  const rules::Evaluator::EvaluatorInput question{
      .rules = *explanation.rules,
      .ledger = history,
      .now = explanation.at,
      .segments = segments,
      .stored = explanation.segments.get(),
      .user = explanation.user,
      .completeness = record.stale ? rules::Completeness::of_replica(explanation.at)
                                   : rules::Completeness(record.missing_before)};
  for (const Candidate& candidate : candidates) {
    explanation.candidates.push_back(evaluator.explain(question, candidate));
  }
}

}  // namespace fcap::explanation
