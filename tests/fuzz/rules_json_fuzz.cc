#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rule_text/rule_json.h"

// Any bytes either are refused or make a rule set that is written and read back the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto parsed = fcap::rule_text::parse_rules_json(bytes);
  if (!parsed.ok()) return 0;
  const std::string written = fcap::rule_text::to_rules_json(parsed.value());
  const auto again = fcap::rule_text::parse_rules_json(written);
  if (!again.ok() || fcap::rule_text::to_rules_json(again.value()) != written) std::abort();
  return 0;
}
