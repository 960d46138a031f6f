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

#include "cli/commands.h"
#include "cli/failure.h"
#include "cli/instants.h"
#include "cli/kafka_connection.h"
#include "cli/rule_loading.h"
#include "cli/simulate/simulation.h"
#include "cli/stored_segments.h"

namespace fcap::cli {
namespace {

/// Rule sets are told apart by file name; where that is not enough, by the whole path.
Result<std::vector<NamedRules>> load_all(const Settings& settings) {
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
    std::string name =
        file.empty() ? loaded.value().source : std::filesystem::path(file).filename().string();
    if (!names.insert(name).second) name = file;
    all.push_back({.name = std::move(name), .rules = loaded.value().rules});
  }
  return all;
}

/// For all rule sets alike; from PostgreSQL only where the rules are from there.
Result<StoredSegments> load_segments_of(const Settings& settings) {
  AccessSettings access = settings.access;
  if (!settings.simulate.rules_files.empty()) {
    access.rules_file = settings.simulate.rules_files.front();
  }
  return load_segments(access);
}

/// None: no topic is read.
Result<std::optional<KafkaSource>> kafka_source_of(const Settings& settings) {
  const auto timeout = parse_duration(settings.access.timeout, "--timeout");
  if (!timeout.ok()) return timeout.status();
  const KafkaSettings& kafka = settings.simulate.kafka;
  if (kafka.brokers.empty()) return std::optional<KafkaSource>();
  auto connection = kafka_connection(kafka, "fcap-simulate");
  if (!connection.ok()) return connection.status();
  return std::optional(KafkaSource{.connection = std::move(connection).value(),
                                   .topic = kafka.topic,
                                   .answer_within = timeout.value()});
}

/// Of --column NAME=COLUMN.
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
  return read_topic(*topic, log, simulation.rejections, progress);
}

void print_notes(const Simulation& simulation, std::ostream& err) {
  if (const Rejections& rejections = simulation.rejections; rejections.count > 0) {
    err << fmt::format(
        "fcap: warning: {} {} left out:\n", rejections.count,
        rejections.count == 1 ? "line is no event and was" : "lines are no events and were");
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
                       counted(simulation.repeated, "event is there more than once and counts",
                               "events are there more than once and count"));
  }
  for (const Outcome& outcome : simulation.outcomes) {
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

Status write_page(const Simulation& simulation, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  file << to_html(simulation);
  file.close();
  if (file) return {};
  return Status::error(StatusCode::kNotFound, "--html: " + path + " cannot be written");
}

}  // namespace

int run_simulate(const Settings& settings, Streams streams) {
  const SimulateSettings& simulate = settings.simulate;
  const Result<std::optional<KafkaSource>> topic = kafka_source_of(settings);
  if (!topic.ok()) return fail(streams, topic.status());
  const Result<CsvLog::ColumnNames> columns = columns_of(simulate);
  if (!columns.ok()) return fail(streams, columns.status());
  const Result<std::vector<NamedRules>> rules = load_all(settings);
  if (!rules.ok()) return fail(streams, rules.status());
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
  Simulation simulation = describe(log);
  simulation.sources = std::move(read.sources);
  simulation.rejections = std::move(read.rejections);
  if (simulation.impressions == 0) {
    print_notes(simulation, streams.err);
    return fail(streams, Status::error(StatusCode::kNotFound, "the log holds no impression"));
  }
  for (const NamedRules& set : rules.value()) {
    simulation.outcomes.push_back(replay(log, set, stored.value().set.get(), progress));
  }
  progress.finish();
  print_notes(simulation, streams.err);
  if (!simulate.html.empty()) {
    const Status written = write_page(simulation, simulate.html);
    if (!written.ok()) return fail(streams, written);
  }
  if (settings.json) {
    print_json(simulation, streams.out);
  } else {
    print_text(simulation, streams.out);
  }
  return kExitOk;
}

}  // namespace fcap::cli
