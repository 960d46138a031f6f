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

// What to know about an answer as of an instant; empty when it is about now.
std::string left_out_text(const Explanation& explained, const LocalTime& local) {
  if (!explained.record.left_out) return {};
  return fmt::format(
      "As of {}: {} left out. When an entry arrived is not recorded, so a check made at that "
      "instant may have known of fewer.\n",
      local.text(explained.at),
      counted(*explained.record.left_out, "later entry was", "later entries were"));
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
  return explanation::verdicts_text(explanation, by(local)) + left_out_text(explanation, local);
}

std::string rules_text(const Explanation& explanation, const LocalTime& local) {
  return explanation::rules_text(explanation, by(local)) + left_out_text(explanation, local);
}

}  // namespace fcap::cli
