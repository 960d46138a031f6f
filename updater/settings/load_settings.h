#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcap/status.h>

#include "updater/settings/settings.h"

namespace fcap::updater {

/// Where settings come from; each beats the ones before it. A secret's order is: its credential,
/// its file, its variable.
struct SettingSources {
  using Named = std::vector<std::pair<std::string, std::string>>;

  /// Empty: no file.
  std::string file_path;
  /// What systemd's LoadCredential= gives; empty: none.
  std::string credentials_directory;
  /// Names and values; those that do not begin with FCAP_UPDATER_ are passed over.
  Named environment;
  /// Field names (without dashes) and values, in the order of the command line.
  Named flags;
  /// What reading the command line has found already; reported with the rest.
  std::vector<std::string> mistakes;
};

/// Settings, and where each value that is not a default comes from.
struct LoadedSettings {
  Settings settings;
  /// By field name: "file", "credential", "environment" or "flag".
  std::map<std::string, std::string, std::less<>> origins;
};

/// Reads and checks everything, offline. On failure the status names every mistake, one per line,
/// each with its place: an unknown name (with the nearest known), a wrong type, a value out of
/// range, a secret in the open, values that contradict each other.
[[nodiscard]] Result<LoadedSettings> load_settings(const SettingSources& sources);

/// The file's part of it: adds the mistakes found in `json` to `mistakes`, without "in FILE".
/// Comments are allowed.
void apply_json(std::string_view json, LoadedSettings& loaded, std::vector<std::string>& mistakes);

/// Finds settings that contradict each other or cannot work, although each is in its range.
void check_settings(const LoadedSettings& loaded, std::vector<std::string>& mistakes);

/// This process's environment.
[[nodiscard]] SettingSources::Named process_environment();

}  // namespace fcap::updater
