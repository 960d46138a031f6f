// A partition's mark, as any program with access to Redis may have written it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "updater/marks/mark_value.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fcap::updater;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto mark = decode_mark(text);
  if (!mark) return 0;
  // One value has one form, and never vouches for more than its position.
  if (encode_mark(*mark) != text || mark->complete_below() > mark->position) std::abort();
  if (mark->gaps.size() > MarkValue::kGapsMax) std::abort();
  if (mark->shard && (mark->shard->node.empty() || mark->shard->replication.empty())) std::abort();
  return 0;
}
