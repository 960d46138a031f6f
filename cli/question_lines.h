#pragma once

#include <functional>
#include <string>

#include <fcap/status.h>

#include "cli/check_question.h"
#include "cli/streams.h"

namespace fcap::cli {

/// A line of output, with its newline.
using AnswerLine = std::function<Result<std::string>(const CheckQuestion&)>;

/// Answers questions from a file ("-" or "": standard input), a line each, in their order. A line
/// that fails gets an answer that says so, and does not stop the rest. Gives the exit code.
int answer_lines(const std::string& input, Asks asks, const AnswerLine& answer, Streams streams);

}  // namespace fcap::cli
