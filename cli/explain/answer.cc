#include "cli/explain/answer.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/instants.h"
#include "explanation/explanation_json.h"
#include "explanation/explanation_text.h"

namespace fcap::cli {
namespace {

explanation::InstantText by(const LocalTime& local) {
  return [&local](Instant instant) { return local.text(instant); };
}

}  // namespace

std::string to_json_line(const Answer& answer) {
  nlohmann::ordered_json json;
  if (!answer.question.id_json.empty()) {
    json["id"] = nlohmann::ordered_json::parse(answer.question.id_json, nullptr, false);
  }
  json.update(explanation::json_of(answer.explanation));
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string verdicts_text(const Explanation& explanation, const LocalTime& local) {
  return explanation::verdicts_text(explanation, by(local));
}

std::string rules_text(const Explanation& explanation, const LocalTime& local) {
  return explanation::rules_text(explanation, by(local));
}

}  // namespace fcap::cli
