#pragma once

#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fcap/rule_set.h>
#include <fcap/segment_set.h>
#include <fcap/status.h>
#include <fcap/time.h>

#include "cli/check_question.h"
#include "cli/local_time.h"
#include "ledger/ledger.h"
#include "rules/evaluate.h"

namespace fcap::cli {

/// What a question is judged by.
struct JudgedBy {
  std::shared_ptr<const RuleSet> rules;
  std::shared_ptr<const SegmentSet> segments;  ///< stored ones; null: none
  /// Events before it may be missing; nullopt: no event is known to be missing.
  std::optional<Instant> missing_before;
  /// Read from a replica, which may lack the latest events.
  bool stale = false;
};

/// A question, judged: everything that the output may tell.
struct Answer {
  Question question;
  Instant at;
  /// Entries later than the question's own instant, left out; none when it asks about now.
  std::optional<std::size_t> left_out;
  JudgedBy by;
  /// kPassed when the history was judged, kNoUser when there is no user.
  Reason reason = Reason::kPassed;
  std::optional<Instant> complete_since;
  /// One per candidate, in the order of the question.
  std::vector<rules::Explanation> explanations;
};

/// Judges by the ledger, of which what is later than the question's instant is dropped first.
/// `now` is the instant of a question that has none. Throws std::bad_alloc only.
Answer answer(const Question& question, ledger::Ledger& history, const JudgedBy& by, Instant now);

/// The answer for an empty or null user id.
Answer answer_no_user(const Question& question, const JudgedBy& by, Instant now);

/// One line of JSON, with its newline. docs/cli.md describes it.
std::string to_json_line(const Answer& answer);
/// The line for a question that got no answer.
std::string to_json_line(const Status& failure, std::size_t line_number, const Question* question);

/// One line per candidate, for people.
void print_verdicts(const Answer& answer, const LocalTime& local, std::ostream& out);
/// Every rule of every candidate, for people.
void print_explanations(const Answer& answer, const LocalTime& local, std::ostream& out);
/// What to know about an answer as of an instant; nothing when it is about now.
void print_left_out(const Answer& answer, const LocalTime& local, std::ostream& out);

}  // namespace fcap::cli
