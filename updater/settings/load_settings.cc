#include "updater/settings/load_settings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <limits>
#include <set>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/file.h"
#include "command_line/nearest_name.h"
#include "updater/settings/field_value.h"
#include "updater/settings/fields.h"

namespace fcap::updater {
namespace {

constexpr std::string_view kVariablePrefix = "FCAP_UPDATER_";
// Where the file is, which the command line has looked at.
constexpr std::string_view kFileVariable = "FCAP_UPDATER_CONFIG";
constexpr std::string_view kFileSuffix = "_file";
constexpr std::size_t kFileBytesMax = std::size_t{1} << 20;

const Field* secret_of_file_name(std::string_view name) {
  if (!name.ends_with(kFileSuffix)) return nullptr;
  const Field* field = find_field(name.substr(0, name.size() - kFileSuffix.size()));
  return field != nullptr && std::holds_alternative<SecretKind>(field->kind) ? field : nullptr;
}

// Whether settings are named "<name>.…", as "redis.tls.enabled" is in "redis.tls".
bool is_group(const std::string& name) {
  return std::ranges::any_of(
      fields(), [&](const Field& field) { return field.name.starts_with(name + "."); });
}

ValueMistake set_secret_from_file(const Field& field, const std::string& path, Settings& settings) {
  auto bytes = base::read_file(path, kFileBytesMax);
  if (!bytes.ok()) return bytes.status().text();
  std::string& text = bytes.value();
  // Editors and `echo` end a file with a newline that is no part of the secret.
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  auto mistake = set_from_text(field, text, settings);
  if (!mistake) settings.secret_files[std::string(field.name)] = path;
  return mistake;
}

// What was given instead, where that is a number or a word: texts may hold passwords.
std::string not_this(const Field& field, const std::string& value) {
  constexpr std::size_t kShownBytesMax = 60;
  const bool is_text = std::holds_alternative<TextKind>(field.kind) ||
                       std::holds_alternative<SecretKind>(field.kind) ||
                       std::holds_alternative<ListKind>(field.kind) ||
                       std::holds_alternative<MapKind>(field.kind);
  if (is_text || value.empty() || value.size() > kShownBytesMax) return {};
  return value.front() == '"' ? ", not " + value : ", not \"" + value + "\"";
}

class Loader {
 public:
  Loader(LoadedSettings& loaded, std::vector<std::string>& mistakes)
      : loaded_(loaded), mistakes_(mistakes) {}

  void file(std::string_view json);
  void credentials(const std::string& directory);
  void variable(std::string_view name, const std::string& value);
  void flag(const std::string& name, const std::string& value);

 private:
  void file_member(const std::string& name, const nlohmann::json& value);
  void took(const Field& field, std::string_view origin) {
    loaded_.origins[std::string(field.name)] = origin;
  }
  // Notes the mistake, or else where the value comes from.
  void note(const std::optional<std::string>& mistake, std::string_view place, const Field& field,
            std::string_view origin, const std::string& value = {}) {
    if (mistake) {
      mistakes_.push_back(fmt::format("{}: {}{}", place, *mistake, not_this(field, value)));
    } else {
      took(field, origin);
    }
  }
  void unknown(std::string_view name, const std::vector<std::string>& known) {
    const std::string nearest = command_line::nearest_name(name, known);
    mistakes_.push_back(nearest.empty()
                            ? fmt::format("{}: unknown name", name)
                            : fmt::format("{}: unknown name; did you mean {}?", name, nearest));
  }

  LoadedSettings& loaded_;
  std::vector<std::string>& mistakes_;
};

std::vector<std::string> known_names(std::string_view section = {}) {
  std::vector<std::string> names;
  for (const Field& field : fields()) {
    if (!field.name.starts_with(section)) continue;
    const bool secret = std::holds_alternative<SecretKind>(field.kind);
    names.push_back(fmt::format("{}{}", field.name, secret ? kFileSuffix : ""));
  }
  return names;
}

// Parses with comments; a member given twice is a mistake, since either could be meant.
nlohmann::json parse_with_comments(std::string_view json, std::vector<std::string>& mistakes) {
  std::vector<std::set<std::string>> open;
  const auto watch = [&](int /*depth*/, nlohmann::json::parse_event_t event,
                         nlohmann::json& parsed) {
    using ParseEvent = nlohmann::json::parse_event_t;
    if (event == ParseEvent::object_start) open.emplace_back();
    if (event == ParseEvent::object_end) open.pop_back();
    if (event == ParseEvent::key && !open.back().insert(parsed.get<std::string>()).second) {
      mistakes.push_back(fmt::format("\"{}\" is given twice", parsed.get<std::string>()));
    }
    return true;
  };
  try {
    return nlohmann::json::parse(json, watch, /*allow_exceptions=*/true, /*ignore_comments=*/true);
  } catch (const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: …"
    const std::string_view text = error.what();
    mistakes.emplace_back(text.substr(std::min(text.find("] ") + 2, text.size())));
    return nlohmann::json::value_t::discarded;
  }
}

void Loader::file(std::string_view json) {
  const nlohmann::json root = parse_with_comments(json, mistakes_);
  if (root.is_discarded()) return;
  if (!root.is_object()) {
    mistakes_.emplace_back("expected an object");
    return;
  }
  for (const auto& [section, members] : root.items()) {
    if (std::ranges::find(sections(), section, &Section::name) == sections().end()) {
      std::vector<std::string> known;
      for (const Section& each : sections()) known.emplace_back(each.name);
      unknown(section, known);
    } else if (!members.is_object()) {
      mistakes_.push_back(fmt::format("{}: expected an object", section));
    } else {
      for (const auto& [name, value] : members.items()) {
        file_member(fmt::format("{}.{}", section, name), value);
      }
    }
  }
}

void Loader::file_member(const std::string& name, const nlohmann::json& value) {
  if (const Field* field = find_field(name)) {
    note(set_from_json(*field, value, loaded_.settings), name, *field, "file", value.dump());
  } else if (value.is_object() && is_group(name)) {
    for (const auto& [inner, inner_value] : value.items()) {
      file_member(fmt::format("{}.{}", name, inner), inner_value);
    }
  } else if (const Field* secret = secret_of_file_name(name)) {
    if (!value.is_string()) {
      mistakes_.push_back(fmt::format("{}: expected a path", name));
    } else {
      note(set_secret_from_file(*secret, value.get<std::string>(), loaded_.settings), name, *secret,
           "file");
    }
  } else {
    // "pasword" is near "password", and not near "password_file", which the file may hold.
    std::vector<std::string> known = known_names();
    for (const Field& each : fields()) known.emplace_back(each.name);
    const Field* meant = find_field(command_line::nearest_name(name, known));
    if (meant != nullptr && std::holds_alternative<SecretKind>(meant->kind)) {
      mistakes_.push_back(
          fmt::format("{}: unknown name; did you mean {}{}?", name, meant->name, kFileSuffix));
    } else {
      unknown(name, known_names());
    }
  }
}

void Loader::credentials(const std::string& directory) {
  for (const Field& field : fields()) {
    const auto* secret = std::get_if<SecretKind>(&field.kind);
    if (secret == nullptr) continue;
    const std::string path = fmt::format("{}/{}", directory, secret->credential);
    if (::access(path.c_str(), F_OK) != 0) continue;  // credentials are optional
    note(set_secret_from_file(field, path, loaded_.settings), path, field, "credential");
  }
}

void Loader::variable(std::string_view name, const std::string& value) {
  if (!name.starts_with(kVariablePrefix) || name == kFileVariable) return;
  std::vector<std::string> known;
  for (const Field& field : fields()) {
    const std::string field_variable = environment_name(field.name);
    if (name == field_variable) {
      note(set_from_text(field, value, loaded_.settings), name, field, "environment", value);
      return;
    }
    if (std::holds_alternative<SecretKind>(field.kind) && name == field_variable + "_FILE") {
      note(set_secret_from_file(field, value, loaded_.settings), name, field, "environment");
      return;
    }
    known.push_back(field_variable);
  }
  unknown(name, known);
}

void Loader::flag(const std::string& name, const std::string& value) {
  const std::string place = "--" + name;
  if (const Field* secret = secret_of_file_name(name)) {
    note(set_secret_from_file(*secret, value, loaded_.settings), place, *secret, "flag");
    return;
  }
  const Field* field = find_field(name);
  if (field == nullptr) {
    unknown(name, known_names());
  } else if (std::holds_alternative<SecretKind>(field->kind)) {
    mistakes_.push_back(fmt::format(
        "{}: a secret must not be given on the command line; use {}_file", place, place));
  } else {
    note(set_from_text(*field, value, loaded_.settings), place, *field, "flag", value);
  }
}

}  // namespace

void apply_json(std::string_view json, LoadedSettings& loaded, std::vector<std::string>& mistakes) {
  Loader(loaded, mistakes).file(json);
}

Result<LoadedSettings> load_settings(const SettingSources& sources) {
  LoadedSettings loaded;
  std::vector<std::string> mistakes;
  Loader loader(loaded, mistakes);
  if (!sources.credentials_directory.empty()) loader.credentials(sources.credentials_directory);
  if (!sources.file_path.empty()) {
    auto bytes = base::read_file(sources.file_path, kFileBytesMax);
    if (bytes.ok()) {
      const std::size_t before = mistakes.size();
      loader.file(bytes.value());
      for (std::size_t i = before; i < mistakes.size(); ++i) {
        mistakes[i] = fmt::format("{}: {}", sources.file_path, mistakes[i]);
      }
    } else {
      mistakes.push_back(bytes.status().text());
    }
  }
  for (const auto& [name, value] : sources.environment) loader.variable(name, value);
  for (const auto& [name, value] : sources.flags) loader.flag(name, value);
  mistakes.insert(mistakes.end(), sources.mistakes.begin(), sources.mistakes.end());
  check_settings(loaded, mistakes);
  if (!mistakes.empty()) {
    return Status::error(StatusCode::kInvalidArgument,
                         fmt::format("{}", fmt::join(mistakes, "\n")));
  }
  return loaded;
}

SettingSources::Named process_environment() {
  SettingSources::Named named;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(kVariablePrefix) || equals == std::string_view::npos) continue;
    named.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return named;
}

}  // namespace fcap::updater
