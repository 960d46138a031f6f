// The configuration file's parser: any bytes are safe, and what it takes can be printed and read
// again.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "updater/settings/load_settings.h"
#include "updater/settings/reference.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fcap::updater;
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  // Files that are named would be read.
  if (json.find("_file") != std::string_view::npos || json.find("\\u") != std::string_view::npos) {
    return 0;
  }
  LoadedSettings loaded;
  std::vector<std::string> mistakes;
  apply_json(json, loaded, mistakes);
  check_settings(loaded, mistakes);
  for (const bool as_json : {false, true}) {
    if (effective_configuration(loaded, as_json).empty()) std::abort();
  }
  return 0;
}
