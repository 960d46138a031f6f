#include "cli/rule_loading.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "cli/instants.h"
#include "config/rule_json.h"
#include "config/rule_refresher.h"
#include "config/snapshot.h"

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

Result<RuleSetSpec> read_rules_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Status::error(StatusCode::kNotFound, path + " cannot be opened");
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // A snapshot says so in its first line; everything else is JSON.
  const auto first = bytes.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && bytes[first] == '{') return config::parse_rules_json(bytes);
  return config::parse_snapshot(bytes);
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
    Result<RuleSetSpec> spec = read_rules_file(access.rules_file);
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
  Result<LoadedRules> read = read_rules(access);
  if (!read.ok()) return read;
  LoadedRules loaded = std::move(read).value();
  auto built = RuleSet::build(loaded.spec, {.retention = retention.value()});
  if (!built.ok()) return with_setting(built.status(), loaded.source);
  loaded.rules = built.value();
  return loaded;
}

}  // namespace fcap::cli
