#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "rule_text/rule_json.h"
#include "rule_text/rule_words.h"

namespace fcap::rule_text {
namespace {

// Keeps the order in which members are added: the order that a person would write them in.
using nlohmann::ordered_json;

ordered_json window_json(const Window& window) {
  ordered_json json;
  json["kind"] = word_of(kWindowKindWords, window.kind);
  switch (window.kind) {
    case Window::Kind::kSliding:
    case Window::Kind::kFixed:
      json["length"] = base::format_length(window.length);
      break;
    case Window::Kind::kCalendar:
      json["unit"] = word_of(kCalendarUnitWords, window.unit);
      json["time_zone"] = window.time_zone;
      if (window.unit == CalendarUnit::kWeek) {
        json["week_start"] = word_of(kWeekdayWords, window.week_start);
      }
      break;
    case Window::Kind::kLifetime:
      break;
  }
  return json;
}

// What has its default is left out, except where a reader would wonder.
ordered_json rule_json(const Rule& rule) {
  ordered_json json;
  json["id"] = rule.id;
  json["scope"] = word_of(kScopeWords, rule.scope);
  if (!rule.target.empty()) json["target"] = rule.target;
  json["event_type"] = word_of(kEventTypeWords, rule.event_type);
  json["limit"] = rule.limit ? ordered_json(*rule.limit) : ordered_json(nullptr);
  json["window"] = window_json(rule.window);
  if (rule.segment) json["segment"] = *rule.segment;
  if (rule.start) json["start"] = base::format_instant(*rule.start);
  if (rule.end) json["end"] = base::format_instant(*rule.end);
  if (rule.mode != Rule::Mode::kEnforce) json["mode"] = word_of(kModeWords, rule.mode);
  if (rule.enforcement != Rule::Enforcement::kSoft) {
    json["enforcement"] = word_of(kEnforcementWords, rule.enforcement);
  }
  return json;
}

ordered_json campaign_json(const Campaign& campaign) {
  ordered_json json;
  json["id"] = campaign.id;
  if (!campaign.advertiser_id.empty()) json["advertiser_id"] = campaign.advertiser_id;
  if (!campaign.groups.empty()) json["groups"] = campaign.groups;
  if (campaign.deleted) json["deleted"] = true;
  return json;
}

// One element per line: readable, and a change of one rule is a change of one line.
template <typename Elements, typename ToJson>
void append_list(std::string& text, std::string_view name, const Elements& elements,
                 ToJson to_json) {
  text.append("  \"").append(name).append("\": [");
  bool first = true;
  for (const auto& element : elements) {
    text.append(first ? "\n    " : ",\n    ");
    first = false;
    // Ids are UTF-8 wherever fcap reads rules; one made in code that is not must not throw here.
    text += to_json(element).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }
  text.append(first ? "]" : "\n  ]");
}

}  // namespace

std::string to_rules_json(const RuleSetSpec& spec) {
  std::string text = "{\n  \"version\": " + std::to_string(spec.version) + ",\n";
  append_list(text, "rules", spec.rules, rule_json);
  text.append(",\n");
  append_list(text, "campaigns", spec.campaigns, campaign_json);
  text.append("\n}\n");
  return text;
}

}  // namespace fcap::rule_text
