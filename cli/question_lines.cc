#include "cli/question_lines.h"

#include <fstream>
#include <istream>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/failure.h"

namespace fcap::cli {
namespace {

// Prints the first warning about the questions; one is enough to notice the others.
class FirstWarning {
 public:
  explicit FirstWarning(std::ostream& err) : err_(err) {}

  void add(std::size_t line_number, const std::string& text) {
    if (text.empty() || said_) return;
    said_ = true;
    err_ << fmt::format("fcap: warning: line {}: {}\n", line_number, text);
  }

 private:
  std::ostream& err_;
  bool said_ = false;
};

// The line for a question that got no answer; `question` is null where it could not even be read.
std::string failure_line(const Status& failure, std::size_t line_number,
                         const CheckQuestion* question) {
  nlohmann::ordered_json json;
  if (question != nullptr && !question->id_json.empty()) {
    json["id"] = nlohmann::ordered_json::parse(question->id_json, nullptr, false);
  }
  if (question != nullptr) json["user"] = question->user;
  json["line"] = line_number;
  json["error"] = failure.text();
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

int answer_each(std::istream& lines, Asks asks, const AnswerLine& answer, Streams streams) {
  FirstWarning warning(streams.err);
  bool all_answered = true;
  std::string line;
  std::size_t line_number = 0;
  while (std::getline(lines, line)) {
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const Result<CheckQuestion> question = parse_question(line, asks);
    if (!question.ok()) {
      all_answered = false;
      streams.out << failure_line(question.status(), line_number, nullptr);
    } else {
      warning.add(line_number, question.value().warning);
      const Result<std::string> answered = answer(question.value());
      all_answered = all_answered && answered.ok();
      streams.out << (answered.ok()
                          ? answered.value()
                          : failure_line(answered.status(), line_number, &question.value()));
    }
    // A program that asks line by line gets its answer before it must ask again.
    if (lines.rdbuf()->in_avail() <= 0) streams.out.flush();
    if (!streams.out) return kExitFailure;
  }
  if (all_answered) return kExitOk;
  streams.err << "fcap: some lines could not be answered; their answers have \"error\"\n";
  return kExitFailure;
}

}  // namespace

int answer_lines(const std::string& input, Asks asks, const AnswerLine& answer, Streams streams) {
  if (input.empty() || input == "-") return answer_each(streams.in, asks, answer, streams);
  std::ifstream file(input, std::ios::binary);
  if (!file) {
    return fail(streams,
                Status::error(StatusCode::kNotFound, "--input: " + input + " cannot be opened"));
  }
  return answer_each(file, asks, answer, streams);
}

}  // namespace fcap::cli
