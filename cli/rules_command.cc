// fcap rules.
#include <chrono>
#include <ostream>
#include <set>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/outside_text.h"
#include "base/time_text.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/local_time.h"
#include "cli/rule_loading.h"
#include "cli/stored_segments.h"
#include "cli/table.h"
#include "rule_text/rule_json.h"
#include "rule_text/rule_words.h"
#include "sources/pg_status.h"
#include "sources/segment_warnings.h"

namespace fcap::cli {
namespace {

using nlohmann::ordered_json;

std::string source_text(const LoadedRules& loaded) {
  return fmt::format(
      "rule set version {} from {}{}: {}, {}", loaded.spec.version, loaded.source,
      loaded.age ? ", written " + base::spoken_length(*loaded.age) + " ago" : std::string(),
      counted(loaded.rules->rules().size(), "rule", "rules"),
      counted(loaded.spec.campaigns.size(), "campaign", "campaigns"));
}

std::string window_text(const Window& window) {
  switch (window.kind) {
    case Window::Kind::kSliding:
      return base::format_length(window.length) + " sliding";
    case Window::Kind::kFixed:
      return base::format_length(window.length) + " fixed";
    case Window::Kind::kCalendar:
      return fmt::format("{} {}", rule_text::word_of(rule_text::kCalendarUnitWords, window.unit),
                         window.time_zone);
    case Window::Kind::kLifetime:
      return "lifetime";
  }
  return {};
}

std::vector<std::string> row_of(const Rule& rule, const LocalTime& local) {
  std::string target(rule_text::word_of(rule_text::kScopeWords, rule.scope));
  if (!rule.target.empty()) target += " " + base::printable(rule.target);
  std::string notes;
  const auto note = [&](const std::string& text) {
    if (!notes.empty()) notes += ", ";
    notes += text;
  };
  if (rule.segment) note("segment " + *rule.segment);
  if (rule.start) note("from " + local.text(*rule.start));
  if (rule.end) note("until " + local.text(*rule.end));
  if (rule.mode == Rule::Mode::kShadow) note("shadow");
  if (rule.enforcement == Rule::Enforcement::kHard) note("hard");
  return {base::printable(rule.id),
          target,
          rule.limit ? std::to_string(*rule.limit) : "none",
          std::string(rule_text::word_of(rule_text::kEventTypeWords, rule.event_type)),
          window_text(rule.window),
          notes};
}

// One mistake per element: without the heading above them, and without their indentation.
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

// All that is wrong or odd about rules and segments.
struct Findings {
  std::vector<std::string> mistakes;
  std::vector<std::string> warnings;
};

// What the processes have reported about the rules in the database.
void add_reports(const LoadedRules& loaded, const AccessSettings& access, Findings& found) {
  const auto timeout = parse_duration(access.timeout, "--timeout");
  if (!timeout.ok() || !loaded.is_from_postgres()) return;
  const auto reports = sources::read_rule_set_status(
      access.postgres, {std::chrono::steady_clock::now() + timeout.value()});
  if (!reports.ok()) return;
  const std::uint64_t version = loaded.spec.version;
  for (const sources::RuleSetStatus& report : reports.value()) {
    if (report.version == version) continue;
    const std::string runs =
        report.version == 0 ? report.process + " has no rules"
                            : fmt::format("{} runs version {}", report.process, report.version);
    if (report.refused_why.empty()) {
      found.warnings.push_back(fmt::format("{}, not yet {}", runs, version));
    } else {
      found.mistakes.push_back(runs + ": " + report.refused_why);
    }
  }
}

// Rules for single campaigns work without a catalog, so this is no mistake; where there is one,
// what it lacks is likely misspelt. One line, because a catalog may be meant to hold few of them.
std::string campaigns_not_in_catalog(const RuleSet& rules) {
  std::set<std::string_view> known;
  for (const Campaign& campaign : rules.campaigns()) known.insert(campaign.id);
  if (known.empty()) return {};
  const Rule* first = nullptr;
  std::size_t count = 0;
  for (const Rule& rule : rules.rules()) {
    const bool one = rule.scope == Scope::kCampaign && rule.target != "*";
    if (!one || known.contains(rule.target)) continue;
    if (count++ == 0) first = &rule;
  }
  if (count == 0) return {};
  return fmt::format("{} a campaign that the catalog does not have, such as rule \"{}\" for \"{}\"",
                     count == 1 ? "1 rule is for" : std::to_string(count) + " rules are each for",
                     first->id, first->target);
}

Findings findings_of(const Result<LoadedRules>& loaded, const Result<StoredSegments>& stored,
                     const AccessSettings& access) {
  Findings found;
  if (loaded.ok()) {
    const LoadedRules& rules = loaded.value();
    found.warnings = rules.rules->warnings();
    if (rules.rules->rules().empty()) {
      found.warnings.emplace_back("the rule set is empty: nothing is capped");
    }
    if (std::string odd = campaigns_not_in_catalog(*rules.rules); !odd.empty()) {
      found.warnings.push_back(std::move(odd));
    }
    for (const std::string& why : rules.quarantined) {
      found.mistakes.push_back("quarantined, not in force: " + why);
    }
    if (!rules.refused_why.empty()) found.mistakes.push_back(rules.refused_why);
    add_reports(rules, access, found);
  } else {
    found.mistakes = mistakes_of(loaded.status());
  }
  if (!stored.ok()) {
    found.mistakes.push_back(stored.status().text());
    return found;
  }
  const auto& odd = stored.value().warnings;
  found.warnings.insert(found.warnings.end(), odd.begin(), odd.end());
  return found;
}

int check(const CliSettings& settings, const Result<LoadedRules>& loaded,
          const Result<StoredSegments>& stored, Streams streams) {
  const Findings found = findings_of(loaded, stored, settings.access);
  const bool ok = found.mistakes.empty();
  const bool has_segments = stored.ok() && stored.value().set != nullptr;
  if (settings.json) {
    ordered_json json;
    json["ok"] = ok;
    json["errors"] = found.mistakes;
    json["warnings"] = found.warnings;
    if (loaded.ok()) {
      json["version"] = loaded.value().spec.version;
      json["rule_count"] = loaded.value().rules->rules().size();
      json["quarantined"] = loaded.value().quarantined;
      json["source"] = loaded.value().source;
    }
    if (has_segments) json["segments"] = segments_json(stored.value());
    streams.out << json.dump(2, ' ', false, ordered_json::error_handler_t::replace) << "\n";
  } else {
    for (const std::string& mistake : found.mistakes) streams.out << "error: " << mistake << "\n";
    for (const std::string& warning : found.warnings) streams.out << "warning: " << warning << "\n";
    if (ok) streams.out << "ok: " << source_text(loaded.value()) << "\n";
    if (ok && has_segments) streams.out << "ok: " << summary_of(stored.value()) << "\n";
  }
  if (ok) return kExitOk;
  const bool no_source = !loaded.ok() && loaded.status().code() == StatusCode::kInvalidArgument;
  return no_source ? kExitUsage : kExitFailure;
}

// Segments, all of them, with warnings of those that rules name and that are not stored.
Result<StoredSegments> segments_beside(const Result<LoadedRules>& loaded,
                                       const AccessSettings& access) {
  Result<StoredSegments> stored = load_segments(access);
  if (!loaded.ok() || !stored.ok() || stored.value().set == nullptr) return stored;
  for (std::string& text : sources::segment_warnings(*loaded.value().rules, *stored.value().set)) {
    stored.value().warnings.push_back(std::move(text));
  }
  return stored;
}

}  // namespace

int run_rules(const CliSettings& settings, Streams streams) {
  const Result<LocalTime> local = LocalTime::of(settings.time_zone);
  if (!local.ok()) return fail(streams, local.status());
  const Result<LoadedRules> loaded = load_rules(settings.access);
  const Result<StoredSegments> stored = segments_beside(loaded, settings.access);
  if (settings.rules.check) return check(settings, loaded, stored, streams);
  if (!loaded.ok()) return fail(streams, loaded.status());
  if (!stored.ok()) return fail(streams, stored.status());
  const LoadedRules& rules = loaded.value();
  const bool has_segments = stored.value().set != nullptr;
  if (!rules.warning.empty()) streams.err << "fcap: warning: " << rules.warning << "\n";
  if (settings.json) {
    // The output is a rules file again, so what is not rules goes beside it.
    streams.err << source_text(rules) << "\n";
    if (has_segments) streams.err << summary_of(stored.value()) << "\n";
    streams.out << rule_text::to_rules_json(rules.spec);
    return kExitOk;
  }
  streams.out << source_text(rules) << "\n";
  std::vector<std::vector<std::string>> rows{{"RULE", "FOR", "LIMIT", "OF", "WINDOW", "NOTES"}};
  for (const Rule& rule : rules.rules->rules()) rows.push_back(row_of(rule, local.value()));
  if (rows.size() > 1) print_table(rows, streams.out);
  if (has_segments) streams.out << summary_of(stored.value()) << "\n";
  print_segments(stored.value(), streams.out);
  const Findings found = findings_of(loaded, stored, settings.access);
  for (const std::string& mistake : found.mistakes) streams.out << "error: " << mistake << "\n";
  for (const std::string& warning : found.warnings) streams.out << "warning: " << warning << "\n";
  return kExitOk;
}

}  // namespace fcap::cli
