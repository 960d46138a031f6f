#pragma once

#include <string>

#include <fcap/explain.h>

#include "cli/check_question.h"
#include "cli/local_time.h"

namespace fcap::cli {

/// A question, answered.
struct Answer {
  CheckQuestion question;
  Explanation explanation;
};

/// One line of JSON, with its newline. docs/cli.md describes it.
std::string to_json_line(const Answer& answer);
/// One line per candidate, for people.
std::string verdicts_text(const Explanation& explanation, const LocalTime& local);
/// Every rule of every candidate, for people.
std::string rules_text(const Explanation& explanation, const LocalTime& local);

}  // namespace fcap::cli
