// fcap rules.
#include <algorithm>
#include <ostream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/rule_loading.h"
#include "config/rule_json.h"
#include "config/rule_words.h"
#include "config/time_text.h"

namespace fcap::cli {
namespace {

using nlohmann::ordered_json;

std::string source_text(const LoadedRules& loaded) {
  return fmt::format("rule set version {} from {}{}: {}, {}", loaded.spec.version, loaded.source,
                     loaded.age ? ", written " + spoken(*loaded.age) + " ago" : std::string(),
                     counted(loaded.spec.rules.size(), "rule", "rules"),
                     counted(loaded.spec.campaigns.size(), "campaign", "campaigns"));
}

std::string window_text(const Window& window) {
  switch (window.kind) {
    case Window::Kind::kSliding:
      return config::format_length(window.length) + " sliding";
    case Window::Kind::kFixed:
      return config::format_length(window.length) + " fixed";
    case Window::Kind::kCalendar:
      return fmt::format("{} {}", config::word_of(config::kCalendarUnitWords, window.unit),
                         window.time_zone);
    case Window::Kind::kLifetime:
      return "lifetime";
  }
  return {};
}

std::vector<std::string> row_of(const Rule& rule) {
  std::string target(config::word_of(config::kScopeWords, rule.scope));
  if (!rule.target.empty()) target += " " + rule.target;
  std::string notes;
  const auto note = [&](const std::string& text) {
    if (!notes.empty()) notes += ", ";
    notes += text;
  };
  if (rule.segment) note("segment " + *rule.segment);
  if (rule.start) note("from " + config::format_instant(*rule.start));
  if (rule.end) note("until " + config::format_instant(*rule.end));
  if (rule.mode == Rule::Mode::kShadow) note("shadow");
  if (rule.enforcement == Rule::Enforcement::kHard) note("hard");
  return {rule.id,
          target,
          rule.limit ? std::to_string(*rule.limit) : "none",
          std::string(config::word_of(config::kEventTypeWords, rule.event_type)),
          window_text(rule.window),
          notes};
}

void print_table(const std::vector<std::vector<std::string>>& rows, std::ostream& out) {
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << "\n";
  }
}

/// One mistake an element: without the heading above them, and without their indentation.
std::vector<std::string> mistakes_of(const Status& status) {
  constexpr std::string_view kIndentation = "  ";
  std::vector<std::string> lines;
  std::istringstream text(status.text());
  for (std::string line; std::getline(text, line);) {
    lines.push_back(line.starts_with(kIndentation) ? line.substr(kIndentation.size()) : line);
  }
  if (lines.size() > 1 && lines.front().ends_with(':')) lines.erase(lines.begin());
  return lines;
}

int check(const Settings& settings, const Result<LoadedRules>& loaded, Streams streams) {
  const std::vector<std::string> mistakes =
      loaded.ok() ? std::vector<std::string>{} : mistakes_of(loaded.status());
  const std::vector<std::string> warnings =
      loaded.ok() ? loaded.value().rules->warnings() : std::vector<std::string>{};
  if (settings.json) {
    ordered_json json;
    json["ok"] = loaded.ok();
    json["errors"] = mistakes;
    json["warnings"] = warnings;
    if (loaded.ok()) {
      json["version"] = loaded.value().spec.version;
      json["rule_count"] = loaded.value().spec.rules.size();
      json["source"] = loaded.value().source;
    }
    streams.out << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
  } else {
    for (const std::string& mistake : mistakes) streams.out << "error: " << mistake << "\n";
    for (const std::string& warning : warnings) streams.out << "warning: " << warning << "\n";
    if (loaded.ok()) streams.out << "ok: " << source_text(loaded.value()) << "\n";
  }
  if (loaded.ok()) return kExitOk;
  return loaded.status().code() == StatusCode::kInvalidArgument ? kExitUsage : kExitFailure;
}

}  // namespace

int run_rules(const Settings& settings, Streams streams) {
  const Result<LoadedRules> loaded = load_rules(settings.access);
  if (settings.rules.check) return check(settings, loaded, streams);
  if (!loaded.ok()) return fail(streams, loaded.status());
  const LoadedRules& rules = loaded.value();
  if (!rules.warning.empty()) streams.err << "fcap: warning: " << rules.warning << "\n";
  if (settings.json) {
    // The output is a rules file again, so what is not rules goes beside it.
    streams.err << source_text(rules) << "\n";
    streams.out << config::to_rules_json(rules.spec);
    return kExitOk;
  }
  streams.out << source_text(rules) << "\n";
  std::vector<std::vector<std::string>> rows{{"RULE", "FOR", "LIMIT", "OF", "WINDOW", "NOTES"}};
  for (const Rule& rule : rules.spec.rules) rows.push_back(row_of(rule));
  if (rows.size() > 1) print_table(rows, streams.out);
  for (const std::string& warning : rules.rules->warnings()) {
    streams.out << "warning: " << warning << "\n";
  }
  return kExitOk;
}

}  // namespace fcap::cli
