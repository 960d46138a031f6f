// The configuration file's parser: any bytes are safe, a refusal has a reason, and what is taken is
// printed as something that is taken again and prints the same.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "updater/settings/fields.h"
#include "updater/settings/load_settings.h"
#include "updater/settings/reference.h"

namespace {

using namespace fcap::updater;
using nlohmann::json;

void require(bool holds) {
  if (!holds) std::abort();
}

// The mistakes in a file.
std::vector<std::string> load(std::string_view file, LoadedSettings& loaded) {
  std::vector<std::string> mistakes;
  apply_json(file, loaded, mistakes);
  check_settings(loaded, mistakes);
  return mistakes;
}

json printed(const LoadedSettings& loaded) {
  return json::parse(effective_configuration(loaded, true)).at("settings");
}

// What is printed, without the members that a file may not have.
std::string as_file(json settings) {
  for (const Field& field : fields()) {
    if (!std::holds_alternative<SecretKind>(field.kind)) continue;
    const std::size_t dot = field.name.find('.');
    settings[std::string(field.name.substr(0, dot))].erase(std::string(field.name.substr(dot + 1)));
  }
  return settings.dump();
}

void require_same_again(const LoadedSettings& loaded) {
  require(!effective_configuration(loaded, false).empty());
  const json settings = printed(loaded);
  const std::string file = as_file(settings);
  // Secrets are masked, so they cannot be read again.
  for (const char* mask : {"(set)", "****"}) {
    if (file.find(mask) != std::string::npos) return;
  }
  LoadedSettings again;
  require(load(file, again).empty());
  require(printed(again) == settings);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  // Files that are named would be read.
  if (file.find("_file") != std::string_view::npos || file.find("\\u") != std::string_view::npos) {
    return 0;
  }
  LoadedSettings loaded;
  const std::vector<std::string> mistakes = load(file, loaded);
  for (const std::string& mistake : mistakes) require(!mistake.empty());
  if (mistakes.empty()) require_same_again(loaded);
  return 0;
}
