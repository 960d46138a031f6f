// fcap check and fcap explain.
#include <fstream>
#include <istream>
#include <ostream>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/judge.h"

namespace fcap::cli {
namespace {

void warn(Streams streams, const std::string& text) {
  if (!text.empty()) streams.err << "fcap: warning: " << text;
}

/// One answer a line, in the order of the questions; a line that fails does not stop the rest.
int answer_lines(Judge& judge, std::istream& lines, Streams streams) {
  bool all_answered = true;
  std::string line;
  std::size_t line_number = 0;
  while (std::getline(lines, line)) {
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Result<Question> question = parse_question(line);
    if (!question.ok()) {
      all_answered = false;
      streams.out << to_json_line(question.status(), line_number, nullptr);
    } else {
      const Result<Answer> answer = judge.answer(question.value());
      all_answered = all_answered && answer.ok();
      streams.out << (answer.ok() ? to_json_line(answer.value())
                                  : to_json_line(answer.status(), line_number, &question.value()));
    }
    // A program that asks line by line gets its answer before it must ask again.
    if (lines.rdbuf()->in_avail() <= 0) streams.out.flush();
    if (!streams.out) return kExitFailure;
  }
  if (all_answered) return kExitOk;
  streams.err << "fcap: some lines could not be answered; their answers have \"error\"\n";
  return kExitFailure;
}

Result<Question> question_of(const std::string& user, const std::vector<std::string>& candidates,
                             const std::vector<std::string>& segments, const std::string& at) {
  Question question;
  question.user = user;
  question.segments = segments;
  for (const std::string& text : candidates) {
    Result<CandidateText> candidate = parse_candidate(text);
    if (!candidate.ok()) return candidate.status();
    question.candidates.push_back(std::move(candidate).value());
  }
  if (!at.empty()) {
    const Result<Instant> instant = parse_at(at, "--at");
    if (!instant.ok()) return instant.status();
    question.at = instant.value();
  }
  return question;
}

/// Answers one question from Redis.
Result<Answer> ask(const Result<Question>& question, const Settings& settings, Streams streams) {
  if (!question.ok()) return question.status();
  Result<std::unique_ptr<Judge>> judge = Judge::over_redis(settings.access);
  if (!judge.ok()) return judge.status();
  warn(streams, judge.value()->warning());
  return judge.value()->answer(question.value());
}

int check_lines(const Settings& settings, Streams streams) {
  const CheckSettings& check = settings.check;
  Result<std::unique_ptr<Judge>> judge = check.events.empty()
                                             ? Judge::over_redis(settings.access)
                                             : Judge::over_events(settings.access, check.events);
  if (!judge.ok()) return fail(streams, judge.status());
  warn(streams, judge.value()->warning());
  if (check.input.empty() || check.input == "-") {
    return answer_lines(*judge.value(), streams.in, streams);
  }
  std::ifstream file(check.input, std::ios::binary);
  if (!file) {
    return fail(streams, Status::error(StatusCode::kNotFound,
                                       "--input: " + check.input + " cannot be opened"));
  }
  return answer_lines(*judge.value(), file, streams);
}

}  // namespace

int run_check(const Settings& settings, Streams streams) {
  const CheckSettings& check = settings.check;
  if (!check.input.empty() || !check.events.empty()) return check_lines(settings, streams);
  const Result<Answer> answer = ask(
      question_of(check.user, check.candidates, check.segments, settings.at), settings, streams);
  if (!answer.ok()) return fail(streams, answer.status());
  if (settings.json) {
    streams.out << to_json_line(answer.value());
  } else {
    print_verdicts(answer.value(), streams.out);
    print_left_out(answer.value(), streams.out);
  }
  return kExitOk;
}

int run_explain(const Settings& settings, Streams streams) {
  const ExplainSettings& explain = settings.explain;
  const Result<Answer> answer =
      ask(question_of(explain.user, {explain.candidate}, explain.segments, settings.at), settings,
          streams);
  if (!answer.ok()) return fail(streams, answer.status());
  if (settings.json) {
    streams.out << to_json_line(answer.value());
  } else {
    print_explanations(answer.value(), streams.out);
    print_left_out(answer.value(), streams.out);
  }
  return kExitOk;
}

}  // namespace fcap::cli
