// The writer's recorded configuration, as any program with access to Redis may have written it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "redis/config_record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fcap::redis;
  const auto parsed = parse_config({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  // What was understood is written again as something that says the same.
  const auto again = parse_config(encode_config(parsed.value()));
  if (!again.ok() || encode_config(again.value()) != encode_config(parsed.value())) std::abort();
  return 0;
}
