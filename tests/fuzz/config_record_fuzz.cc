// The writer's recorded configuration, as any program with access to Redis may have written it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "redis/config_record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fcap::redis;
  const auto parsed = parse_config({reinterpret_cast<const char*>(data), size});
  if (!parsed.ok()) return 0;
  // By slot, no statement gets lost, and no slot has two instants.
  SlotSet seen;
  for (const MissingEvents& events : parsed.value().missing_by_slot()) {
    if (events.slots.empty() || events.slots.meets(seen)) std::abort();
    seen |= events.slots;
  }
  for (const auto& [topic, partitions] : parsed.value().missing_before) {
    for (const auto& [partition, events] : partitions) {
      if (!seen.covers(events.slots)) std::abort();
    }
  }
  // What was understood is written again as something that says the same.
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  for (const std::string& written :
       {encode_config(parsed.value()), with_missing_before(text, parsed.value().missing_before)}) {
    const auto again = parse_config(written);
    // What is no UTF-8 may have become longer.
    if (!again.ok() && written.size() > kConfigBytesMax) continue;
    if (!again.ok() || encode_config(again.value()) != encode_config(parsed.value())) std::abort();
  }
  return 0;
}
