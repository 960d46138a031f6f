// fcap check and fcap explain.
#include <ostream>

#include "cli/commands.h"
#include "cli/explain/answer.h"
#include "cli/explain/judge.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/local_time.h"
#include "cli/question_lines.h"

namespace fcap::cli {
namespace {

void warn(Streams streams, const std::string& text) {
  if (!text.empty()) streams.err << "fcap: warning: " << text;
}

Result<CheckQuestion> question_of(const QuestionSettings& asked, const std::string& at) {
  CheckQuestion question;
  question.user = asked.user;
  question.segments = asked.segments;
  for (const std::string& text : asked.candidates) {
    Result<CandidateText> candidate = parse_candidate(text);
    if (!candidate.ok()) return candidate.status();
    question.candidates.push_back(std::move(candidate).value());
  }
  if (!at.empty()) {
    const Result<Instant> instant = parse_at(at, "--at");
    if (!instant.ok()) return instant.status();
    question.at = instant.value();
    question.warning = seconds_warning(at, "--at");
  }
  return question;
}

Result<std::unique_ptr<Judge>> open_judge(const QuestionSettings& asked,
                                          const AccessSettings& access, Streams streams) {
  Result<std::unique_ptr<Judge>> judge =
      asked.events.empty() ? Judge::over_redis(access) : Judge::over_events(access, asked.events);
  if (judge.ok()) warn(streams, judge.value()->warning());
  return judge;
}

// Answers the one question of the command line.
Result<Answer> ask(const QuestionSettings& asked, const CliSettings& settings, Streams streams) {
  const Result<CheckQuestion> question = question_of(asked, settings.at);
  if (!question.ok()) return question.status();
  if (!question.value().warning.empty()) warn(streams, question.value().warning + "\n");
  const Result<std::unique_ptr<Judge>> judge = open_judge(asked, settings.access, streams);
  if (!judge.ok()) return judge.status();
  return judge.value()->answer(question.value());
}

using Text = std::string (*)(const Explanation&, const LocalTime&);

int answer_questions(const QuestionSettings& asked, const CliSettings& settings, Streams streams,
                     Text text) {
  const Result<LocalTime> local = LocalTime::of(settings.time_zone);
  if (!local.ok()) return fail(streams, local.status());
  if (asked.from_lines()) {
    const Result<std::unique_ptr<Judge>> judge = open_judge(asked, settings.access, streams);
    if (!judge.ok()) return fail(streams, judge.status());
    const auto answer = [&judge](const CheckQuestion& question) -> Result<std::string> {
      const Result<Answer> answered = judge.value()->answer(question);
      if (!answered.ok()) return answered.status();
      return to_json_line(answered.value());
    };
    return answer_lines(asked.input, Asks::kCandidates, answer, streams);
  }
  const Result<Answer> answer = ask(asked, settings, streams);
  if (!answer.ok()) return fail(streams, answer.status());
  if (settings.json) {
    streams.out << to_json_line(answer.value());
  } else {
    streams.out << text(answer.value().explanation, local.value());
  }
  return kExitOk;
}

}  // namespace

int run_check(const CliSettings& settings, Streams streams) {
  return answer_questions(settings.check, settings, streams, verdicts_text);
}

int run_explain(const CliSettings& settings, Streams streams) {
  return answer_questions(settings.explain, settings, streams, rules_text);
}

}  // namespace fcap::cli
