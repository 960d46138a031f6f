// fcap simulate.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/kafka_connection.h"
#include "cli/rule_loading.h"
#include "cli/simulate/limit_sweep.h"
#include "cli/simulate/simulation.h"
#include "cli/stored_segments.h"

namespace fcap::cli {
namespace {

// Rule sets are named by the name that they contain, or by their file's; where two are equal, by
// the whole path.
Result<std::vector<NamedRules>> load_all(const CliSettings& settings) {
  std::vector<NamedRules> all;
  std::set<std::string> names;
  std::vector<std::string> files = settings.simulate.rules_files;
  const bool from_files = !files.empty();
  if (!from_files) files.emplace_back(settings.access.rules_file);
  for (const std::string& file : files) {
    AccessSettings access = settings.access;
    access.rules_file = file;
    Result<LoadedRules> loaded = load_rules(access);
    if (!loaded.ok()) return loaded.status();
    std::string name = loaded.value().name;
    if (name.empty()) {
      name = file.empty() ? loaded.value().source : std::filesystem::path(file).filename().string();
    }
    if (!names.insert(name).second) name = file;
    all.push_back({.name = std::move(name), .rules = loaded.value().rules});
  }
  return all;
}

// For all rule sets alike; from PostgreSQL only where the rules are from there.
Result<StoredSegments> load_segments_of(const CliSettings& settings) {
  AccessSettings access = settings.access;
  if (!settings.simulate.rules_files.empty()) {
    access.rules_file = settings.simulate.rules_files.front();
  }
  return load_segments(access);
}

// None: no topic is read.
Result<std::optional<KafkaSource>> kafka_source_of(const CliSettings& settings) {
  const auto timeout = parse_duration(settings.access.timeout, "--timeout");
  if (!timeout.ok()) return timeout.status();
  const TopicSettings& kafka = settings.simulate.kafka;
  if (kafka.brokers.empty()) return std::optional<KafkaSource>();
  auto connection = kafka_connection(kafka, "fcap-simulate");
  if (!connection.ok()) return connection.status();
  return std::optional(KafkaSource{.connection = std::move(connection).value(),
                                   .topic = kafka.topic,
                                   .answer_within = timeout.value()});
}

// Reads --column NAME=COLUMN.
Result<CsvLog::ColumnNames> columns_of(const SimulateSettings& simulate) {
  constexpr std::array<std::string_view, 7> kNames{
      "user_id", "campaign_id", "creative_id", "timestamp", "type", "imp_id", "event_id"};
  CsvLog::ColumnNames columns;
  for (const std::string& text : simulate.columns) {
    const auto equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == text.size() ||
        std::find(kNames.begin(), kNames.end(), name) == kNames.end()) {
      return Status::error(
          StatusCode::kInvalidArgument,
          fmt::format("--column: \"{}\": write NAME=COLUMN; NAME must be one of {}", text,
                      fmt::join(kNames, ", ")));
    }
    columns[name] = text.substr(equals + 1);
  }
  return columns;
}

Status read_all(const SimulateSettings& simulate, const CsvLog::ColumnNames& columns,
                const std::optional<KafkaSource>& topic, ImpressionLog& log, Simulation& simulation,
                Progress& progress) {
  for (const std::string& path : simulate.log_files) {
    simulation.sources.push_back(path);
    Status status = read_log_file(path, columns, log, simulation.rejections, progress);
    if (!status.ok()) return status;
  }
  if (!topic) return {};
  simulation.sources.push_back("topic " + topic->topic);
  return with_kafka_options(read_topic(*topic, log, simulation.rejections, progress), "--kafka");
}

void print_notes(const Simulation& simulation, std::ostream& err) {
  if (const Rejections& rejections = simulation.rejections; rejections.count > 0) {
    err << fmt::format(
        "fcap: warning: {} {} left out:\n", rejections.count,
        rejections.count == 1 ? "line is not an event and was" : "lines are not events and were");
    for (const Rejections::Told& told : rejections.first) {
      err << fmt::format("  {}: line {}: {}\n", told.source, told.line, told.reason);
    }
    if (rejections.count > rejections.first.size()) err << "  …\n";
  }
  if (simulation.without_user > 0) {
    err << fmt::format("fcap: warning: {} no user id; never capped, and left out\n",
                       counted(simulation.without_user, "impression has", "impressions have"));
  }
  if (simulation.repeated > 0) {
    err << fmt::format("fcap: warning: {} once\n",
                       counted(simulation.repeated, "event appears more than once and counts",
                               "events appear more than once and count"));
  }
  for (const SimulationOutcome& outcome : simulation.outcomes) {
    // Ids that are spelled otherwise in the rules than in the log look like caps that cost nothing.
    if (!outcome.any_rule_fits) {
      err << fmt::format(
          "fcap: warning: {}: no rule applies to any campaign of the log: are the ids those of the "
          "log?\n",
          outcome.name);
    }
    for (const std::string& warning : outcome.warnings) {
      err << fmt::format("fcap: warning: {}: {}\n", outcome.name, warning);
    }
  }
}

Status write_file(const std::string& option, const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return {};
  return Status::error(StatusCode::kNotFound, option + ": " + path + " cannot be written");
}

Result<std::vector<NamedRules>> rule_sets_for(const CliSettings& settings) {
  Result<std::vector<NamedRules>> loaded = load_all(settings);
  if (!loaded.ok() || settings.simulate.sweep.empty()) return loaded;
  const Result<LimitSweep> sweep = parse_sweep(settings.simulate.sweep);
  if (!sweep.ok()) return sweep.status();
  if (loaded.value().size() > 1) {
    return Status::error(StatusCode::kInvalidArgument, "--sweep goes with one rule set");
  }
  return rule_sets_of(sweep.value(), loaded.value().front());
}

Status write_reports(const SimulateSettings& simulate, const Simulation& simulation) {
  if (!simulate.html.empty()) {
    Status status = write_file("--html", simulate.html, to_html(simulation));
    if (!status.ok()) return status;
  }
  return simulate.csv.empty() ? Status{} : write_file("--csv", simulate.csv, to_csv(simulation));
}

}  // namespace

int run_simulate(const CliSettings& settings, Streams streams) {
  const SimulateSettings& simulate = settings.simulate;
  const Result<std::optional<KafkaSource>> topic = kafka_source_of(settings);
  if (!topic.ok()) return fail(streams, topic.status());
  const Result<CsvLog::ColumnNames> columns = columns_of(simulate);
  if (!columns.ok()) return fail(streams, columns.status());
  const Result<std::vector<NamedRules>> rules = rule_sets_for(settings);
  if (!rules.ok()) return fail(streams, rules.status());
  Result<ItemNames> names =
      simulate.names.empty() ? Result<ItemNames>(ItemNames()) : ItemNames::read(simulate.names);
  if (!names.ok()) return fail(streams, names.status());
  const std::string& zone_name = settings.time_zone;
  Result<rules::Zone> zone = rules::Zone::load(zone_name.empty() ? "UTC" : zone_name);
  if (!zone.ok()) {
    return fail(streams, Status::error(StatusCode::kInvalidArgument,
                                       "--time-zone: " + zone.status().text()));
  }
  const Result<StoredSegments> stored = load_segments_of(settings);
  if (!stored.ok()) return fail(streams, stored.status());
  for (const std::string& warning : stored.value().warnings) {
    streams.err << "fcap: warning: " << warning << "\n";
  }
  const bool at_terminal = &streams.err == &std::cerr && isatty(STDERR_FILENO) == 1;
  Progress progress(streams.err, simulate.progress || at_terminal);
  ImpressionLog log(settings.access.null_user_ids);
  Simulation read;
  const Status status = read_all(simulate, columns.value(), topic.value(), log, read, progress);
  progress.finish();
  if (!status.ok()) return fail(streams, status);
  log.put_in_order();
  Simulation simulation =
      describe(log, std::make_shared<const rules::Zone>(std::move(zone).value()));
  if (!zone_name.empty()) simulation.time_zone = zone_name;
  simulation.made_at = base::wall_now();
  simulation.names = std::move(names).value();
  simulation.cpm = simulate.cpm;
  simulation.sources = std::move(read.sources);
  simulation.rejections = std::move(read.rejections);
  if (simulation.impressions == 0) {
    print_notes(simulation, streams.err);
    return fail(streams, Status::error(StatusCode::kNotFound, "the log holds no impression"));
  }
  std::vector<SimulationOutcome> outcomes;
  for (const NamedRules& set : rules.value()) {
    outcomes.push_back(replay(log, simulation, set, stored.value().set.get(), progress));
  }
  simulation.outcomes = std::move(outcomes);
  progress.finish();
  print_notes(simulation, streams.err);
  if (const Status written = write_reports(simulate, simulation); !written.ok()) {
    return fail(streams, written);
  }
  if (settings.json) {
    print_json(simulation, streams.out);
  } else {
    print_text(simulation, streams.out);
  }
  return kExitOk;
}

}  // namespace fcap::cli
