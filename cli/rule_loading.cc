#include "cli/rule_loading.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "cli/instants.h"
#include "config/pg_connection.h"
#include "config/rule_json.h"
#include "config/rule_refresher.h"
#include "config/snapshot.h"
#include "config/time_text.h"

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

/// What a snapshot begins with.
constexpr std::string_view kSnapshotWord = "fcap-rules ";
constexpr const char* kMistakesHeading = "the rules are not valid:";

/// `mistakes` is one a line.
std::string below_heading(const std::string& mistakes) {
  std::string text;
  std::istringstream lines(mistakes);
  for (std::string line; std::getline(lines, line);) text += "\n  " + line;
  return text;
}

/// Rules that are wrong are not a wrong command line: the status says that the file is.
Result<RuleSetSpec> parse_rules(const std::string& json, const AccessSettings& access) {
  RuleSetSpec sound;
  Result<RuleSetSpec> spec = config::parse_rules_json(json, sound);
  if (spec.ok()) return spec;
  std::string text = spec.status().text();
  // What else is wrong, in those rules that could be read: all mistakes at once.
  if (const auto retention = config::parse_length(access.retention)) {
    const auto built = RuleSet::build(std::move(sound), {.retention = *retention});
    if (!built.ok()) text += below_heading(built.status().text());
  }
  return Status::error(StatusCode::kCorrupt, std::move(text));
}

Result<RuleSetSpec> read_rules_file(const AccessSettings& access) {
  const std::string& path = access.rules_file;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Status::error(StatusCode::kNotFound, path + " is a directory");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::error(StatusCode::kNotFound, path + " cannot be opened");
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // A snapshot says so in its first line; JSON rules are an object, before which a comment may be.
  const auto first = bytes.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return Status::error(StatusCode::kCorrupt, path + " is empty");
  Result<RuleSetSpec> spec =
      bytes[first] == '{' || bytes[first] == '/' ? parse_rules(bytes, access)
      : bytes.starts_with(kSnapshotWord)
          ? config::parse_snapshot(bytes)
          : Result<RuleSetSpec>(
                Status::error(StatusCode::kCorrupt, "is neither JSON rules nor a snapshot"));
  if (spec.ok()) return spec;
  return with_setting(spec.status(), path);
}

Result<LoadedRules> from_snapshot(const AccessSettings& access, std::string warning) {
  Result<RuleSetSpec> spec = config::read_snapshot(access.snapshot_file);
  if (!spec.ok()) return with_setting(spec.status(), "--snapshot");
  return LoadedRules{.spec = std::move(spec).value(),
                     .rules = nullptr,
                     .source = "snapshot " + access.snapshot_file,
                     .age = age_of(access.snapshot_file),
                     .warning = std::move(warning)};
}

}  // namespace

Result<LoadedRules> read_rules(const AccessSettings& access) {
  if (!access.rules_file.empty()) {
    Result<RuleSetSpec> spec = read_rules_file(access);
    if (!spec.ok()) return with_setting(spec.status(), "--rules");
    return LoadedRules{.spec = std::move(spec).value(),
                       .rules = nullptr,
                       .source = "file " + access.rules_file,
                       .age = age_of(access.rules_file),
                       .warning = {}};
  }
  if (!access.postgres.empty()) {
    const auto timeout = parse_duration(access.timeout, "--timeout");
    if (!timeout.ok()) return timeout.status();
    if (!config::check_conninfo(access.postgres).ok()) {
      return Status::error(StatusCode::kInvalidArgument,
                           "--postgres (FCAP_POSTGRES) is not a libpq connection string, such as "
                           "\"host=db1 dbname=fcap\"");
    }
    Result<RuleSetSpec> spec = config::load_from_postgres(access.postgres, timeout.value());
    if (spec.ok()) {
      return LoadedRules{.spec = std::move(spec).value(),
                         .rules = nullptr,
                         .source = "PostgreSQL",
                         .age = std::nullopt,
                         .warning = {}};
    }
    const Status failed = with_setting(spec.status(), "--postgres");
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
    // Not the rules' fault.
    return Status::error(none.status().code(), "--" + none.status().text());
  }
  Result<LoadedRules> read = read_rules(access);
  if (!read.ok()) return read;
  LoadedRules loaded = std::move(read).value();
  auto built = RuleSet::build(loaded.spec, {.retention = retention.value()});
  if (!built.ok()) {
    return Status::error(StatusCode::kCorrupt, loaded.source + ": " + kMistakesHeading +
                                                   below_heading(built.status().text()));
  }
  loaded.rules = built.value();
  return loaded;
}

}  // namespace fcap::cli
