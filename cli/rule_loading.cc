#include "cli/rule_loading.h"

#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/time_text.h"
#include "cli/instants.h"
#include "postgres/conninfo.h"
#include "postgres/pg_connection.h"
#include "rule_text/rule_json.h"
#include "rule_text/snapshot.h"
#include "sources/pg_load.h"
#include "sources/reload_policy.h"

namespace fcap::cli {
namespace {

std::optional<std::chrono::milliseconds> age_of(const std::string& path) {
  std::error_code error;
  const auto written = std::filesystem::last_write_time(path, error);
  if (error) return std::nullopt;
  return std::chrono::floor<std::chrono::milliseconds>(
      std::filesystem::file_time_type::clock::now() - written);
}

Status with_setting(const Status& status, const std::string& setting) {
  return Status::error(status.code(), setting + ": " + status.text(), status.retryable());
}

// What a snapshot begins with.
constexpr std::string_view kSnapshotWord = "fcap-rules ";
constexpr const char* kMistakesHeading = "the rules are not valid:";

// `mistakes` holds one per line.
std::string below_heading(const std::string& mistakes) {
  std::string text;
  std::istringstream lines(mistakes);
  for (std::string line; std::getline(lines, line);) text += "\n  " + line;
  return text;
}

// Rules that are wrong are not a wrong command line: the status says that the file is.
Result<RuleSetSpec> parse_rules(const std::string& json, const AccessSettings& access) {
  RuleSetSpec sound;
  Result<RuleSetSpec> spec = rule_text::parse_rules_json(json, sound);
  if (spec.ok()) return spec;
  std::string text = spec.status().text();
  // What else is wrong, in those rules that could be read: all mistakes at once.
  if (const auto retention = base::parse_length(access.retention)) {
    const auto built = RuleSet::build(std::move(sound), {.retention = *retention});
    if (!built.ok()) text += below_heading(built.status().text());
  }
  return Status::error(StatusCode::kCorrupt, std::move(text));
}

Result<RuleSetSpec> read_rules_file(const AccessSettings& access, std::string& name) {
  const std::string& path = access.rules_file;
  const Result<std::string> read = base::read_file(path);
  if (!read.ok()) return read.status();
  const std::string& bytes = read.value();
  // A snapshot says so in its first line; JSON rules are an object, before which a comment may be.
  const auto first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return Status::error(StatusCode::kCorrupt, path + " is empty");
  Result<RuleSetSpec> spec =
      bytes[first] == '{' || bytes[first] == '/' ? parse_rules(bytes, access)
      : bytes.starts_with(kSnapshotWord)
          ? rule_text::parse_snapshot(bytes)
          : Result<RuleSetSpec>(
                Status::error(StatusCode::kCorrupt, "is neither JSON rules nor a snapshot"));
  if (!spec.ok()) return with_setting(spec.status(), path);
  if (!bytes.starts_with(kSnapshotWord)) name = rule_text::name_in_rules_json(bytes);
  return spec;
}

Result<LoadedRules> from_snapshot(const AccessSettings& access, std::string warning) {
  Result<RuleSetSpec> spec = rule_text::read_snapshot(access.snapshot_file);
  if (!spec.ok()) return with_setting(spec.status(), "--snapshot");
  return LoadedRules{.spec = std::move(spec).value(),
                     .rules = nullptr,
                     .source = "snapshot " + access.snapshot_file,
                     .age = age_of(access.snapshot_file),
                     .warning = std::move(warning)};
}

// Compared with the last good set, where a snapshot has one, as every process compares.
std::string why_refused(const LoadedRules& loaded, const AccessSettings& access) {
  if (access.snapshot_file.empty()) return {};
  const Result<RuleSetSpec> last = rule_text::read_snapshot(access.snapshot_file);
  if (!last.ok()) return {};
  const auto size_of = [](std::uint64_t version, const auto& rules, const auto& campaigns) {
    return sources::RuleSetSize{version, rules.size(), campaigns.size()};
  };
  const auto judgement = sources::decide_reload(
      size_of(last.value().version, last.value().rules, last.value().campaigns),
      size_of(loaded.rules->version(), loaded.rules->rules(), loaded.rules->campaigns()),
      {.accepted_version = loaded.accepted_version});
  if (judgement.accepted) return {};
  return "version " + std::to_string(loaded.rules->version()) + " is refused, " + judgement.remark +
         "; the fleet is likely still on version " + std::to_string(last.value().version);
}

}  // namespace

Result<LoadedRules> read_rules(const AccessSettings& access) {
  if (!access.rules_file.empty()) {
    std::string name;
    Result<RuleSetSpec> spec = read_rules_file(access, name);
    if (!spec.ok()) return with_setting(spec.status(), "--rules");
    return LoadedRules{.spec = std::move(spec).value(),
                       .rules = nullptr,
                       .name = std::move(name),
                       .source = "file " + access.rules_file,
                       .age = age_of(access.rules_file)};
  }
  if (!access.postgres.empty()) {
    const auto timeout = parse_duration(access.timeout, "--timeout");
    if (!timeout.ok()) return timeout.status();
    if (!postgres::check_conninfo(access.postgres).ok()) {
      return Status::error(StatusCode::kInvalidArgument,
                           "--postgres (FCAP_POSTGRES) is not a libpq connection string, such as "
                           "\"host=db1 dbname=fcap\"");
    }
    rules::PlainSpecSink sink;
    auto read = sources::load_if_changed(
        access.postgres, std::nullopt, {std::chrono::steady_clock::now() + timeout.value()}, sink);
    if (read.ok()) {
      sources::LoadedTables& tables = *read.value();
      sink.spec.version = tables.version.version;
      return LoadedRules{.spec = std::move(sink.spec),
                         .rules = nullptr,
                         .source = "PostgreSQL",
                         .age = std::nullopt,
                         .quarantined = std::move(tables.quarantined),
                         .accepted_version = tables.version.accepted_version};
    }
    const Status failed = with_setting(read.status(), "--postgres");
    if (access.snapshot_file.empty()) return failed;
    return from_snapshot(access, failed.text());
  }
  if (!access.snapshot_file.empty()) return from_snapshot(access, {});
  return Status::error(StatusCode::kInvalidArgument,
                       "no rules: set --rules FILE, --postgres (FCAP_POSTGRES) or --snapshot "
                       "(FCAP_RULES_SNAPSHOT)");
}

Result<LoadedRules> load_rules(const AccessSettings& access) {
  const auto retention = parse_duration(access.retention, "--retention");
  if (!retention.ok()) return retention.status();
  if (const auto none = RuleSet::build({}, {.retention = retention.value()}); !none.ok()) {
    // There are no rules in this build, so a setting is wrong.
    return Status::error(none.status().code(), "--" + none.status().text());
  }
  Result<LoadedRules> read = read_rules(access);
  if (!read.ok()) return read;
  LoadedRules loaded = std::move(read).value();
  // Processes leave out what is wrong by itself; who writes a file wants to have all mistakes.
  const bool quarantine = access.rules_file.empty();
  auto built =
      RuleSet::build(loaded.spec, {.retention = retention.value(), .quarantine = quarantine});
  if (!built.ok()) {
    return Status::error(StatusCode::kCorrupt, loaded.source + ": " + kMistakesHeading +
                                                   below_heading(built.status().text()));
  }
  loaded.rules = built.value();
  const auto& left_out = loaded.rules->quarantined();
  loaded.quarantined.insert(loaded.quarantined.end(), left_out.begin(), left_out.end());
  if (loaded.is_from_postgres()) loaded.refused_why = why_refused(loaded, access);
  return loaded;
}

}  // namespace fcap::cli
